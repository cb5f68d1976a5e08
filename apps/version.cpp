#include "apps/version.h"

#include "commit.h"  // made by the build

namespace twiddle {

std::string version() {
  return TWIDDLE_VERSION;
}
std::string commit() {
  return built_commit;
}
std::string compiler() {
  return TWIDDLE_COMPILER;
}

}  // namespace twiddle
