#pragma once
#include "fft/cuda/pair_products/pair_tile.h"

// A is split once, before the product: each of its tiles is multiplied with many of B's.
namespace twiddle::pairs {

constexpr int rows_of_a = 128;

// A part of A as the product reads it.
struct SplitPart {
  Halves<rows_of_a> halves;
  float back[rows_of_a];  // takes the rows' scales back
};

struct SplitArguments {
  Factor a;
  int k, steps, tiles;
  bool balance;      // whether columns are brought to the same size, too
  SplitPart* parts;  // [tile][step]
  float* scales;     // what B's rows are multiplied by: k, and what is left of the last step
};

// A block has a step, and all tiles of rows one after the other.
template <bool AlongK, int Width>
__global__ void __launch_bounds__(threads) split_kernel(const SplitArguments g) {
  __shared__ Floats<AlongK, rows_of_a> part;
  __shared__ int sums[warps][depth], counts[warps][depth];
  __shared__ alignas(16) float scales[depth];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int step = static_cast<int>(blockIdx.x);
  const auto load = [&](int tile) {
    StepCopy<AlongK, Width, rows_of_a>(g.a, std::int64_t(tile) * rows_of_a, thread).copy(step * depth, g.k, part);
    small_fft::commit_group();
    small_fft::wait_group<0>();
    __syncthreads();
  };
  ColumnExponent column;
  if (g.balance) {
    for (int tile = 0; tile < g.tiles; ++tile) {
      load(tile);
      add_exponents(part, warp, lane, column);
      __syncthreads();
    }
    sums[warp][lane] = column.sum, counts[warp][lane] = column.count;
    __syncthreads();
  }
  if (warp == 0) {
    if (g.balance)
      for (int i = 1; i < warps; ++i) column.add({sums[i][lane], counts[i][lane]});
    const int exponent = g.balance ? column.mean() : 0;
    scales[lane] = power_of_two(-exponent);
    g.scales[step * depth + lane] = power_of_two(exponent);
  }
  for (int tile = 0; tile < g.tiles; ++tile) {
    load(tile);  // with a barrier, after which the scales are there
    SplitPart& to = g.parts[std::int64_t(tile) * g.steps + step];
    split_rows(part, thread, scales, to.halves, to.back);
    __syncthreads();
  }
}

}  // namespace twiddle::pairs
