#pragma once
#include <exception>
#include <string>

namespace twiddle {

// What an exception that ends the program comes to.
struct Failure {
  std::string text;  // for people
  int code = 1;      // the program's
  bool error = true;
};
Failure failure_of(const std::exception_ptr& exception);

void print_error(const std::string& message);  // on standard error, with "error: " before it where it has no such label
void print_failure(const Failure& failure);

}  // namespace twiddle
