#include "apps/version.h"

// Replaces apps/version.cpp: the program as built from another commit.
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
