#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on NVIDIA H100s (sm_90) with CUDA 13.0.
namespace twiddle::pairs {

// Winograd's products (real_pairs.cpp): below these sides a tile is mostly empty, and below so many multiplications any
// product is done in no time.
constexpr std::int64_t least_side = 32, least_multiplications = 1 << 20;

// How k is cut (pair_product.cu): the shortest part; what a tile takes to begin and to end, and a last kernel, in steps
// of a block that shares a multiprocessor; what such a step takes where the block has it alone; and the numbers that
// are written or read in its time.
constexpr std::int64_t least_part = 256;
constexpr double ends_of_a_tile = 3, step_of_a_last_kernel = 3, alone = 0.6, floats_a_step = 1 << 19;

// By wgmma B is split beforehand, too, where so many tiles of A's rows are multiplied with it: then the product is 1.1
// to 1.2 times as fast. With four it is as fast, with one it takes up to 1.7 times as long.
constexpr std::int64_t tiles_that_share_b = 8;

// Up to so many rows of A, B is split by the threads that multiply it (few_rows.h), in sums of as many terms or more.
constexpr std::int64_t most_few_rows = 256, least_sum_of_few_rows = 128;

// Where both sides of C are as long and sums as short, A stays in registers (short_sums.h).
constexpr std::int64_t least_side_of_short_sums = 1000;

}  // namespace twiddle::pairs
