#include "apps/version.h"

namespace twiddle {

std::string version() {
  return TWIDDLE_VERSION;
}
std::string compiler() {
  return TWIDDLE_COMPILER;
}

}  // namespace twiddle
