#pragma once
#include <stdexcept>
#include <string>

namespace twiddle {

// Thrown out of long work that nobody waits for any more. No Error: nothing failed, so that whoever catches a failure
// to try something else does not catch this.
struct Interrupted : std::runtime_error {
  // What to tell people: where it stopped.
  explicit Interrupted(const std::string& where = "stopped before the work began") : std::runtime_error(where) {}
};

}  // namespace twiddle
