#pragma once
#include <cstdlib>

namespace twiddle {

constexpr int seeds = 8;  // a test each, so that a large number of problems can be shared by processes

// TWIDDLE_RANDOM_PROBLEMS asks for more than what is quick.
inline int problems_of_a_seed(int quick) {
  const char* const text = std::getenv("TWIDDLE_RANDOM_PROBLEMS");
  return text != nullptr ? (std::atoi(text) + seeds - 1) / seeds : quick;
}

}  // namespace twiddle
