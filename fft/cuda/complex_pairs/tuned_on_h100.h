#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on one NVIDIA H100 (sm_90) with CUDA 13.0.
namespace twiddle::complex_pairs {

// Below these sides a tile is mostly empty, and below so many multiplications any product is done in no time.
constexpr std::int64_t least_side = 32, least_multiplications = 1 << 20;

// Real operations in a ms: 69e9 to 136e9, the more the larger k is. For the estimate by which planes/fbfft_grids.cpp
// sorts grids. With one half a float: 84e9 to 265e9.
constexpr double operations_a_ms = 120e9, halves_operations_a_ms = 200e9;

// With one half a float: how long a step of a tile of 128 x 128 takes, where one of half the size takes 1; 1.5 where
// sums are long, and up to 1.9 where storing C takes most of the time.
constexpr double large_step = 1.82;

// Rows of A that are enough to know a column's mean exponent by: reading them takes 5 to 28 us.
constexpr int sampled_rows = 32;

// How k is cut (pair_products.cu): what a tile takes to begin and to end, in steps, and the shortest part.
constexpr std::int64_t ends_of_a_tile = 2, least_part = 256, most_parts = 16;

}  // namespace twiddle::complex_pairs
