#pragma once
#include "fft/cuda/pair_products/pair_tile.h"

// A is split once, before the product, as each of its tiles is multiplied with many of B's. B is split too if each of
// its tiles is multiplied with several of A's.
namespace twiddle::pairs {

constexpr int rows_of_a = 128, rows_of_b = 64;  // of a tile; B's are columns of C

// A step's part of a factor's tile as the product reads it.
template <int Rows>
struct SplitPart {
  Fp16Tile<Rows> fp16;
  float back[Rows];  // undoes the rows' scales
};

struct SplitArguments {
  Factor a, sample;  // which columns are brought to the same size by
  int k, steps, tiles;
  bool balance;                 // whether they are
  SplitPart<rows_of_a>* parts;  // [matrix][tile][step]
  float* scales;                // what B's rows are multiplied by: of each matrix k, and what is left of the last step
};

// Returns as many rows as a tile has, in fours that are evenly spread; all rows if a tile has them.
template <bool AlongK>
Factor sample_of(const Factor& factor) {
  constexpr std::int64_t adjacent = 4;
  const std::int64_t spread = (factor.rows + rows_of_a - 1) / rows_of_a;
  Factor sample = factor;
  if (spread <= 1) return sample;
  if constexpr (AlongK) {
    sample.stride *= spread, sample.rows = factor.rows / spread;
  } else {
    sample.period = Divisor(adjacent), sample.piece_stride = adjacent * spread;
    sample.rows = factor.rows / (adjacent * spread) * adjacent;
  }
  return sample;
}

// A block has a tile of a step of a matrix.
template <Order order, bool AlongK, int Width>
class Splitting {
 public:
  struct Shared {
    Floats<AlongK, rows_of_a> part;
    int sums[warps][depth], counts[warps][depth];
    alignas(16) float scales[depth];
  };
  __device__ Splitting(const SplitArguments& g, Shared& shared)
      : g_(g),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        tile_(static_cast<int>(blockIdx.x) % g.tiles),
        step_(static_cast<int>(blockIdx.x) / g.tiles),
        matrix_(blockIdx.y) {}

  __device__ void run() {
    const int exponent = g_.balance ? exponent_of_column() : 0;
    if (thread_ < depth) {
      shared_.scales[thread_] = power_of_two(-exponent);
      if (tile_ == 0) g_.scales[(matrix_ * g_.steps + step_) * depth + thread_] = power_of_two(exponent);
    }
    if (g_.balance && g_.tiles == 1)
      __syncthreads();  // the sample is the tile
    else
      load(g_.a, tile_);  // with a barrier
    SplitPart<rows_of_a>& to = g_.parts[(matrix_ * g_.tiles + tile_) * g_.steps + step_];
    split_rows<order>(shared_.part, thread_, shared_.scales, to.fp16, to.back);
  }

 private:
  // Returns the exponent of column thread % 32. If the sample has only zeros, it reads all rows.
  __device__ int exponent_of_column() {
    const ColumnExponent sampled = sum_of_warps(exponents(g_.sample, 1));
    const bool may_be_more = g_.tiles > 1 && sampled.count == 0 && step_ * depth + thread_ % depth < g_.k;
    if (!__syncthreads_or(may_be_more)) return sampled.mean();
    return sum_of_warps(exponents(g_.a, g_.tiles)).mean();
  }
  __device__ ColumnExponent exponents(const Factor& factor, int tiles) {
    ColumnExponent column;
    for (int tile = 0; tile < tiles; ++tile) {
      load(factor, tile);
      add_exponents(shared_.part, thread_ / 32, thread_ % 32, column);
      __syncthreads();
    }
    return column;
  }
  __device__ ColumnExponent sum_of_warps(const ColumnExponent& of_warp) {
    const int lane = thread_ % 32;
    shared_.sums[thread_ / 32][lane] = of_warp.sum, shared_.counts[thread_ / 32][lane] = of_warp.count;
    __syncthreads();
    ColumnExponent column;
    for (int i = 0; i < warps; ++i) column.add({shared_.sums[i][lane], shared_.counts[i][lane]});
    return column;
  }
  __device__ void load(const Factor& factor, int tile) {
    StepCopy<AlongK, Width, rows_of_a>(factor, matrix_, std::int64_t(tile) * rows_of_a, thread_)
        .copy(step_ * depth, g_.k, shared_.part);
    small_fft::commit_group();
    small_fft::wait_group<0>();
    __syncthreads();
  }

  const SplitArguments& g_;
  Shared& shared_;
  int thread_, tile_, step_;
  std::int64_t matrix_;
};

template <Order order, bool AlongK, int Width>
__global__ void __launch_bounds__(threads) split_kernel(const SplitArguments g) {
  __shared__ typename Splitting<order, AlongK, Width>::Shared shared;
  Splitting<order, AlongK, Width>(g, shared).run();
}

struct SplitArgumentsOfB {
  Factor b;
  int k, steps, tiles;
  const float* scales;          // of [matrix], k
  SplitPart<rows_of_b>* parts;  // [matrix][tile][step]
};

template <bool AlongK, int Width>
__global__ void __launch_bounds__(threads) split_kernel_of_b(const SplitArgumentsOfB g) {
  __shared__ Floats<AlongK, rows_of_b> part;
  __shared__ alignas(16) float scales[depth];
  const int thread = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x) / g.steps, step = static_cast<int>(blockIdx.x) % g.steps;
  const std::int64_t matrix = blockIdx.y;
  StepCopy<AlongK, Width, rows_of_b>(g.b, matrix, std::int64_t(tile) * rows_of_b, thread).copy(step * depth, g.k, part);
  small_fft::commit_group();
  if (thread < depth) scales[thread] = g.scales[(matrix * g.steps + step) * depth + thread];
  small_fft::wait_group<0>();
  __syncthreads();
  SplitPart<rows_of_b>& to = g.parts[(matrix * g.tiles + tile) * g.steps + step];
  split_rows(part, thread, scales, to.fp16, to.back);
}

}  // namespace twiddle::pairs
