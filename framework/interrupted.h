#pragma once
#include <stdexcept>

namespace twiddle {

// Thrown out of long work that nobody waits for any more. No Error: nothing failed, so that whoever catches a failure
// to try something else does not catch this.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace twiddle
