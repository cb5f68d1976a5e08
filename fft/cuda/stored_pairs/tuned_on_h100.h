#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on one NVIDIA H100 (sm_90) with CUDA 13.0.
namespace twiddle::stored_pairs {

// Below these sides a tile is mostly empty; below this number of multiplications any product takes negligible time.
constexpr std::int64_t least_side = 32, least_multiplications = 1 << 20;

// For tilings (stored_products.cu): a tile's start and end, in steps of a 128 x 64 tile; the relative time per step of
// a 64 x 128 tile; the shortest part. If only the last bins are split, the launch that adds their parts takes two
// steps.
constexpr double ends_of_a_tile = 2, sum_of_last_bins = 2;
constexpr std::int64_t long_sum = 512;
constexpr double wide_of_short_sums = 0.95, wide_of_long_sums = 1.05;
constexpr std::int64_t least_part = 256, most_parts = 16;

}  // namespace twiddle::stored_pairs
