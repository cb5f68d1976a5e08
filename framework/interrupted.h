#pragma once
#include <stdexcept>
#include <string>

namespace twiddle {

// Thrown to abort long work whose result is no longer needed. It is not an Error, because nothing failed: code that
// catches an Error to try an alternative must not catch this.
struct Interrupted : std::runtime_error {
  // `where` is the message for the user: where the work stopped.
  explicit Interrupted(const std::string& where = "stopped before the work began") : std::runtime_error(where) {}
};

}  // namespace twiddle
