#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace twiddle {

// The kind of an error; its value is the program's exit code.
enum class ErrorKind { failed = 1, config = 2, data = 3, device = 4, diverged = 5 };

// The one exception of this library; the message says where, what, and what to do.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : Error(ErrorKind::failed, message) {}
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// A device is out of memory. A separate type, because a caller that knows the model can add what would fit.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& message) : Error(ErrorKind::device, message) {}
};

namespace detail {

// Not a stream in each caller: <sstream> costs 0.4 s of compiling in each file.
void append(std::string& text, std::string_view part);
void append(std::string& text, char part);
void append(std::string& text, int part);
void append(std::string& text, long part);
void append(std::string& text, long long part);
void append(std::string& text, unsigned part);
void append(std::string& text, unsigned long part);
void append(std::string& text, unsigned long long part);
void append(std::string& text, double part);  // six significant digits

}  // namespace detail

// Strings the parts together: join("expects ", 3, " channels").
template <class... Parts>
std::string join(const Parts&... parts) {
  std::string text;
  (detail::append(text, parts), ...);
  return text;
}

// Throws an Error made of the parts unless the condition holds: for a caller's mistake.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) throw Error(join(parts...));
}

}  // namespace twiddle
