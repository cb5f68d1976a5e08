#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on one NVIDIA H100 (sm_90) with CUDA 13.0.
namespace twiddle::stored_pairs {

// Below these sides a tile is mostly empty, and below so many multiplications any product is done in no time.
constexpr std::int64_t least_side = 32, least_multiplications = 1 << 20;

// How C and k are cut (stored_products.cu): what a tile takes to begin and to end, in steps of one of 128 x 64; what a
// step of one of 64 x 128 takes beside it; the shortest part. Where the last bins alone are in parts, the launch that
// adds these up takes as long as two steps.
constexpr double ends_of_a_tile = 2, sum_of_last_bins = 2;
constexpr std::int64_t long_sum = 512;
constexpr double wide_of_short_sums = 0.95, wide_of_long_sums = 1.05;
constexpr std::int64_t least_part = 256, most_parts = 16;

}  // namespace twiddle::stored_pairs
