#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90, 132 multiprocessors) with
// CUDA 13.0. They choose among tiles and lengths of parts, so that on another GPU the tiling may not be the
// fastest; `engine: measured` selects among products on the current GPU. As the number of parts depends on the
// number of multiprocessors, sums may differ in their last bits from GPU to GPU.
namespace twiddle::small_fft {

// A tile of C a block, and the part of it that a thread sums; k is loaded `depth` at a time, into as many stages of
// shared memory. A multiprocessor's registers should suffice for min_blocks. `speed`: how fast the tile multiplies when
// all of it is needed, relative to 64 x 64 of the same kind.
struct TileShape {
  int rows, columns, thread_rows, thread_columns, min_blocks;
  double speed;
  int depth = 8, stages = 4;
};
constexpr TileShape tile_shapes[] = {
    {64, 64, 8, 4, 4, 1},
    {32, 32, 4, 4, 8, 1.01},
    {64, 16, 4, 4, 8, 0.75},
    {128, 4, 2, 2, 4, 0.45, 16, 3},
};
constexpr TileShape tile_shapes_3m[] = {
    {64, 64, 8, 4, 3, 1},
    {64, 32, 8, 4, 6, 0.85},
    {32, 32, 4, 4, 8, 0.7},
};
constexpr TileShape tile_shapes_real[] = {
    {64, 128, 8, 8, 4, 1, 16, 2},    {64, 64, 8, 8, 7, 0.97, 16, 2},  {32, 64, 4, 8, 8, 0.78, 16, 2},
    {32, 32, 4, 4, 12, 0.63, 16, 3}, {16, 64, 4, 4, 12, 0.56, 16, 3}, {16, 32, 4, 4, 16, 0.53, 16, 3},
};

// In a shorter part of k the sum over the parts is more work than the parallelism saves.
constexpr std::int64_t least_part = 256;

// A tile's start and end take as long as this number of multiplications.
constexpr double begin_and_end = 1000;

// Waves of blocks: beyond this many they overlap, so that a part of a wave counts as a part; and a GPU that is hardly
// filled still takes this part of a wave's time.
constexpr double overlapping_waves = 4, least_wave = 0.4;

// For sums of channels (channel_sum.h): blocks per multiprocessor, and how many rows a part has at least, so
// that its sums are more work than adding them up. A thread sums an eighth of a part: the longest keeps that short for
// fp32.
constexpr std::int64_t channel_sum_blocks = 8, least_rows_of_a_sum = 64, longest_sum_of_rows = 4096;

}  // namespace twiddle::small_fft
