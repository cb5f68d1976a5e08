#pragma once
#include <cstdint>

namespace twiddle {

// What the loops of framework/for_each.h are told of one exponential: how many simple operations it is worth.
constexpr std::int64_t exp_cost = 20;

}  // namespace twiddle
