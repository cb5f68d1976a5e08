#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90, 132 multiprocessors) with
// CUDA 13.0. They choose among tiles and lengths of parts, so that on another GPU a product may not be cut in the
// fastest way; `engine: measured` chooses among products on the GPU at hand. As the number of parts depends on the
// number of multiprocessors, sums may differ in their last bits from GPU to GPU.
namespace twiddle::small_fft {

constexpr int multiprocessors_of_an_h200 = 132;

// Relative to 64 x 64 of the same kind, how fast a tile multiplies when all of it is needed.
struct TileSpeed {
  static constexpr double of_64x64 = 1, of_32x32 = 1.01, of_64x16 = 0.75, of_128x4 = 0.45;
  static constexpr double of_64x64_3m = 1, of_64x32_3m = 0.85, of_32x32_3m = 0.7;
};

// In a shorter part of k the sum over the parts is more work than the parallelism saves.
constexpr std::int64_t least_part = 256;

// To begin and to end a tile takes as long as so many multiplications.
constexpr double begin_and_end = 1000;

// Waves of blocks: beyond this many they overlap, so that a part of a wave counts as a part; and a GPU that is hardly
// filled still takes this part of a wave's time.
constexpr double overlapping_waves = 4, least_wave = 0.4;

}  // namespace twiddle::small_fft
