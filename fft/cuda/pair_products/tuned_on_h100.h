#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on NVIDIA H100s (sm_90) with CUDA 13.0.
namespace twiddle::pairs {

// Winograd's products (real_pairs.cpp): below these sides a tile is mostly empty; below this number of multiplications
// any product takes negligible time.
constexpr std::int64_t least_side = 32, least_multiplications = 1 << 20;

// For splitting k (pair_product.cu): the shortest part; steps for a tile's start and end and for a last kernel, in
// steps of a block that shares a multiprocessor; the relative time per step of a block alone on one; and the numbers
// written or read in a step's time.
constexpr std::int64_t least_part = 256;
constexpr double ends_of_a_tile = 3, step_of_a_last_kernel = 3, alone = 0.6, floats_a_step = 1 << 19;

// By wgmma, B is split beforehand, too, if at least this number of tiles of A's rows are multiplied with it: the
// product is then 1.1x to 1.2x as fast. With four tiles it is as fast, with one it takes up to 1.7x as long.
constexpr std::int64_t tiles_that_share_b = 8;

// Up to this number of rows of A, B is split by the threads that multiply it (few_rows.h), for sums of at least this
// length.
constexpr std::int64_t most_few_rows = 256, least_sum_of_few_rows = 128;

// If both sides of C are at least this long and sums are short, A stays in registers (short_sums.h).
constexpr std::int64_t least_side_of_short_sums = 1000;

}  // namespace twiddle::pairs
