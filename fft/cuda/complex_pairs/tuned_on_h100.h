#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on one NVIDIA H100 (sm_90) with CUDA 13.0.
namespace twiddle::complex_pairs {

// Below these sides a tile is mostly empty; below this number of multiplications any product takes negligible time.
constexpr std::int64_t least_side = 32, least_multiplications = 1 << 20;

// Real operations per ms: 69e9 to 136e9, increasing with k. Used in the estimate by which planes/fbfft_grids.cpp sorts
// grids. With a single fp16 value per float: 84e9 to 265e9.
constexpr double operations_a_ms = 120e9, halves_operations_a_ms = 200e9;

// With a single fp16 value per float: time per step of a 128 x 128 tile relative to one of half the size. It is 1.5 for
// long sums and up to 1.9 if storing C takes most of the time.
constexpr double large_step = 1.82;

// Rows of A that suffice to estimate a column's mean exponent: reading them takes 5 to 28 us.
constexpr int sampled_rows = 32;

// For tilings (pair_products.cu): steps for a tile's start and end, and the shortest part of k.
constexpr std::int64_t ends_of_a_tile = 2, least_part = 256, most_parts = 16;

}  // namespace twiddle::complex_pairs
