#include "apps/version.h"

// In the place of apps/version.cpp: the program as it would be of another commit.
namespace twiddle {

std::string version() {
  return "0.0.0";
}
std::string commit() {
  return "another commit";
}
std::string compiler() {
  return "of another compiler";
}

}  // namespace twiddle
