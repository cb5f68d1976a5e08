#pragma once
#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/winograd/tile_blocks.h"
#include "fft/spectral_transform.h"
#include "fft/winograd/winograd_form.h"

// What the threads of one block do, in phases: between two of them is a barrier. A kernel runs them on a GPU
// (cuda_winograd.cu), a test on a CPU, thread after thread.
namespace twiddle::winograd_blocks {

// Planes to a spectrum: `line` of `size` x `size` elements of each tile.
template <int outputs, int size, auto line>
struct ForwardBlock {
  TileBlocks blocks;
  const float *source, *mask;
  float* spectrum;

  TWIDDLE_HD void load(const TileBlocks::Place& at, int thread, int threads, float* staged) const {
    if (mask != nullptr)
      blocks.for_each_element(at, thread, threads, [&](const TileBlocks::Element& element) {
        staged[element.staged] = element.inside && mask[element.at] > 0 ? source[element.at] : 0;
      });
    else
      blocks.for_each_element(at, thread, threads, [&](const TileBlocks::Element& element) {
        small_fft::async_copy(staged + element.staged, source + (element.inside ? element.at : 0), element.inside);
      });
    small_fft::commit_group();
    small_fft::wait_group<0>();
  }

  TWIDDLE_HD void transform(const TileBlocks::Place& at, int thread, int threads, const float* staged) const {
    constexpr int points = outputs + 2;
    const int pitch = blocks.patch_w();
    const std::int64_t bin_size = blocks.bin_size();
    for (int item = thread; item < blocks.items(); item += threads) {
      const TileBlocks::Tile tile = blocks.tile(at, item);
      if (!tile.present) continue;
      const float* const from = staged + tile.patch + tile.down * pitch + tile.across;
      float elements[size][size], bins[points][points];
#pragma unroll
      for (int i = 0; i < size; ++i)
#pragma unroll
        for (int j = 0; j < size; ++j) elements[i][j] = from[i * pitch + j];
      nest<line>(elements, bins);
      float* to = spectrum + tile.bin;
#pragma unroll
      for (int i = 0; i < points; ++i)
#pragma unroll
        for (int j = 0; j < points; ++j, to += bin_size) *to = bins[i][j];
    }
  }
};

// A tile's bins, `line` of them.
template <auto line, int points, int size>
TWIDDLE_HD void inverse_of_tile(const float* from, std::int64_t bin_size, float (&elements)[size][size]) {
  float bins[points][points];
#pragma unroll
  for (int i = 0; i < points; ++i)
#pragma unroll
    for (int j = 0; j < points; ++j, from += bin_size) bins[i][j] = *from;
  nest<line>(bins, elements);
}

TWIDDLE_HD inline void store_patches(const TileBlocks& blocks, const TileBlocks::Place& at, int thread, int threads,
                                     const float* staged, float* target) {
  blocks.for_each_element(at, thread, threads, [&](const TileBlocks::Element& element) {
    if (element.own) target[element.at] = staged[element.staged];
  });
}

// A spectrum to planes, by tiles that do not overlap.
template <int outputs, int size, auto line>
struct InverseBlock {
  TileBlocks blocks;
  const float* spectrum;
  float* target;
  PlaneEpilogue epilogue;

  TWIDDLE_HD void transform(const TileBlocks::Place& at, int thread, int threads, float* staged) const {
    const int pitch = blocks.patch_w();
    for (int item = thread; item < blocks.items(); item += threads) {
      const TileBlocks::Tile tile = blocks.tile(at, item);
      if (!tile.present) continue;
      float elements[size][size];
      inverse_of_tile<line, outputs + 2>(spectrum + tile.bin, blocks.bin_size(), elements);
      const float bias = epilogue.bias != nullptr ? epilogue.bias[tile.plane_column] : 0;
      float* const to = staged + tile.patch + tile.down * pitch + tile.across;
#pragma unroll
      for (int i = 0; i < size; ++i)
#pragma unroll
        for (int j = 0; j < size; ++j) {
          const float value = elements[i][j] + bias;
          to[i * pitch + j] = epilogue.relu && value < 0 ? 0 : value;
        }
    }
  }
  TWIDDLE_HD void store(const TileBlocks::Place& at, int thread, int threads, const float* staged) const {
    store_patches(blocks, at, thread, threads, staged, target);
  }
};

// A spectrum to x, whose tiles overlap: overlap-add in shared memory. Each thread adds tiles in even rows and columns
// of tiles first, and so on: tiles of one parity do not overlap. The order is fixed, and so is the sum.
template <int outputs>
struct OverlapAddBlock {
  static constexpr int points = outputs + 2, parities = 4;
  using Sums = float[points][points];
  TileBlocks blocks;
  const float* spectrum;
  float* target;

  TWIDDLE_HD void clear(int thread, int threads, float* staged) const {
    for (int i = thread; i < blocks.staged_floats(); i += threads) staged[i] = 0;
  }
  TWIDDLE_HD int rounds(int threads) const { return (blocks.items() + threads - 1) / threads; }
  // Transforms the thread's tile in this round.
  TWIDDLE_HD void transform(const TileBlocks::Place& at, int item, Sums& sums) const {
    const TileBlocks::Tile tile = blocks.tile(at, item);
    if (!tile.present) return;
    inverse_of_tile<WinogradForm<outputs>::template input_transposed<float>, points>(spectrum + tile.bin,
                                                                                     blocks.bin_size(), sums);
  }
  TWIDDLE_HD void add(const TileBlocks::Place& at, int item, int parity, const Sums& sums, float* staged) const {
    const TileBlocks::Tile tile = blocks.tile(at, item);
    if (!tile.present || tile.row % 2 * 2 + tile.column % 2 != parity) return;
    float* const to = staged + tile.patch + tile.down * blocks.patch_w() + tile.across;
#pragma unroll
    for (int i = 0; i < points; ++i)
#pragma unroll
      for (int j = 0; j < points; ++j)
        // A tile of the blocks above or before has only its last rows or columns in this one.
        if (tile.down + i >= 0 && tile.across + j >= 0) to[i * blocks.patch_w() + j] += sums[i][j];
  }
  TWIDDLE_HD void store(const TileBlocks::Place& at, int thread, int threads, const float* staged) const {
    store_patches(blocks, at, thread, threads, staged, target);
  }
};

}  // namespace twiddle::winograd_blocks
