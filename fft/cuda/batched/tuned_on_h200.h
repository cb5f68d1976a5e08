#pragma once
#include <cstdint>
#include <limits>

// Numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90, 132 multiprocessors) with CUDA
// 13.0; docs/results/transforms.md has the tables. Results do not depend on them; on another GPU some may not be the
// fastest. (The block shapes of rows, of columns and of shared planes stand where these are instantiated, in
// *_kernels*.cu, and are as much measured.)
namespace twiddle::small_fft {

constexpr std::int64_t any_number = std::numeric_limits<std::int64_t>::max();

// Up to how many rows the kernels for few of them are the fastest: rows of a thread each, and ...
constexpr std::int64_t few_short_rows(int points) {
  return points <= 16 ? 16384 : points <= 20 ? 8192 : 1024;
}
// ... rows that several threads share; stored [row][bins], or [bin][row].
constexpr std::int64_t few_long_rows = 8192;
constexpr std::int64_t few_long_rows_by_bin(int points) {
  return points == 256 ? 2048 : few_long_rows;
}

// Planes to [plane][row][bins] through shared memory: `planes` a block, of which a multiprocessor's registers and
// shared memory have room for min_blocks. Up to `few` planes are faster straight to memory, few_in_block a block; few
// 0: none.
struct PlaneMajorShape {
  int height, width, planes, min_blocks;
  std::int64_t few = 0;
  int few_in_block = 1;
};
constexpr PlaneMajorShape plane_major_shapes[] = {
    {2, 2, 128, 8, 16384, 32},
    {4, 4, 64, 8, 16384, 16},
    {8, 8, 8, 16, 2048, 4},
    {10, 10, 32, 8, 2048, 8},
    {12, 12, 16, 10},
    {14, 14, 16, 8},
    {16, 16, 4, 16, 256, 1},
    {18, 18, 16, 6},
    {20, 20, 16, 6},
    {24, 24, 8, 8},
    {28, 28, 8, 5},
    {30, 30, 8, 5},
    {36, 36, 8, 3},
    {40, 40, 8, 3},
    {48, 48, 4, 5},
    {8, 16, 16, 8},
    {16, 8, 16, 8},
    {8, 32, 8, 6},
    {32, 8, 8, 6},
    {10, 20, 16, 6},
    {20, 10, 16, 6},
    {12, 24, 8, 8},
    {24, 12, 8, 8},
    {14, 28, 8, 5},
    {28, 14, 8, 5},
    {16, 32, 8, 6},
    {32, 16, 8, 6},
    {16, 64, 4, 3},
    {64, 16, 4, 3},
    {18, 36, 8, 4},
    {36, 18, 8, 4},
    {20, 40, 8, 3},
    {40, 20, 8, 3},
    {24, 48, 4, 4},
    {48, 24, 4, 4},
    {32, 64, 4, 3},
    {64, 32, 4, 3},
};

}  // namespace twiddle::small_fft
