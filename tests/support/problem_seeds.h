#pragma once
#include <cstdlib>

namespace twiddle {

constexpr int seeds = 8;  // a test each, so that a large number of problems can be shared by processes

// Returns TWIDDLE_RANDOM_PROBLEMS, or `quick`, a number that runs quickly.
inline int problems_of_a_seed(int quick) {
  const char* const text = std::getenv("TWIDDLE_RANDOM_PROBLEMS");
  return text != nullptr ? (std::atoi(text) + seeds - 1) / seeds : quick;
}

}  // namespace twiddle
