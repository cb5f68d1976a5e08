#pragma once
#include "fft/cuda/device/tensor_core.h"
#include "layers/conv/cuda/implicit_gemm/split_filters.h"

// y = x * w as a matrix product of which rows are positions, columns are filters, and k are taps.
namespace twiddle::implicit_gemm {

constexpr int forward_warps = 8, forward_threads = forward_warps * lanes;
constexpr int forward_rows = 2;  // of a warp, of 16 positions each
constexpr int row_tile = 16;     // rows that a tensor core takes at once
constexpr int steps_a_turn = 2;  // of the weights that come to shared memory together
constexpr int ring = 3;          // turns that have room where not all have

// What a block has in shared memory, in floats, one behind the other.
struct ForwardPlaces {
  int weights, offsets, back_of_filters, bias, exponents, tops, all;
  ForwardPlaces(const Patches& p, int buffers, int slots, int columns, int steps)
      : weights(buffers * p.floats()),
        offsets(weights + slots * steps_a_turn * columns * lanes * 4),
        back_of_filters(offsets + steps * step),
        bias(back_of_filters + columns * column),
        exponents(bias + columns * column),
        tops(exponents + p.channels),
        all(tops + forward_warps) {}
};

struct ForwardArguments {
  Patches p;
  ForwardPlaces places;
  int tiles, filters, steps, turns;
  int warps_across;  // of a block, with other filters; the rest: other positions
  int slots;         // turns of weights that have room: all, or a ring
  int buffers;       // patches that have room: with two of them the next one comes while one is multiplied
  const float *x, *bias;
  bool relu;
  const int *exponents, *offsets;
  const float* back;
  const uint4* pieces;
  float* y;
};

// A warp has 32 positions and 8 Columns filters.
template <int Columns, bool Pairs>
class Forward {
 public:
  __device__ Forward(const ForwardArguments& g, float* shared)
      : g_(g),
        columns_(g.warps_across * Columns),
        first_filter_(static_cast<int>(blockIdx.y) * columns_ * column),
        patches_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % lanes) {
    const int warp = thread_ / lanes, across = warp % g.warps_across;
    first_position_ = warp / g.warps_across * Rows * row_tile + lane_ / 4;
    first_column_ = across * Columns;
    weights_ = reinterpret_cast<uint4*>(shared + g.places.weights);
    offsets_ = reinterpret_cast<int*>(shared + g.places.offsets);
    back_of_filters_ = shared + g.places.back_of_filters;
    bias_ = shared + g.places.bias;
    exponents_ = reinterpret_cast<int*>(shared + g.places.exponents);
    tops_ = reinterpret_cast<int*>(shared + g.places.tops);
  }

  __device__ void run() {
    for (int i = thread_; i < g_.steps * step; i += forward_threads) offsets_[i] = g_.offsets[i];
    for (int i = thread_; i < columns_ * column; i += forward_threads) {
      const int filter = first_filter_ + i;
      back_of_filters_[i] = filter < g_.filters ? g_.back[filter] : 0;
      bias_[i] = filter < g_.filters && g_.bias != nullptr ? g_.bias[filter] : 0;
    }
    for (int i = thread_; i < g_.p.channels; i += forward_threads) exponents_[i] = g_.exponents[i];
    int index = static_cast<int>(blockIdx.x), buffer = 0;
    if (index >= g_.tiles) return;
    const bool resident = g_.slots == g_.turns;
    if (resident)
      for (int turn = 0; turn < g_.turns; ++turn) copy_weights(turn, turn);
    copy(index, patches_);
    for (; index < g_.tiles; index += static_cast<int>(gridDim.x)) {
      const int next = index + static_cast<int>(gridDim.x);
      float* const patch = patches_ + buffer * g_.p.floats();
      small_fft::wait_group<0>();
      __syncthreads();
      const bool ahead = g_.buffers == 2 && next < g_.tiles;
      if (ahead) copy(next, patches_ + (buffer ^ 1) * g_.p.floats());
      split(patch);
      if (resident)
        multiply_resident(index, patch);
      else
        multiply_by_turns(index, patch);
      if (g_.buffers == 2) {
        buffer ^= 1;
      } else if (next < g_.tiles) {
        __syncthreads();
        copy(next, patches_);
      }
      store(index);
    }
  }

 private:
  static constexpr int Rows = forward_rows;

  __device__ void copy(int index, float* patch) {
    copy_patch<forward_threads>(g_.p, g_.x, tile_of(g_.p, index), thread_, patch);
    small_fft::commit_group();
  }

  // The whole patch by one power of two, behind those of its channels.
  __device__ void split(float* patch) {
    int top = none;
    for (int channel = 0; channel < g_.p.channels; ++channel) {
      const float most = largest_of_thread<forward_threads>(g_.p, patch + channel * g_.p.plane, thread_);
      const int exponent = pairs::exponent_of(most);
      if (exponent >= -126 && exponent <= 127) top = max(top, exponent + exponents_[channel]);
    }
    top = largest_of_warp(top);
    if (lane_ == 0) tops_[thread_ / lanes] = top;
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < forward_warps; ++warp) top = max(top, tops_[warp]);
    const int exponent = top == none ? 0 : pairs::limited(pairs::top_exponent - top, 126);
    for (int channel = 0; channel < g_.p.channels; ++channel) {
      const float scale = pairs::power_of_two(pairs::limited(exponent + exponents_[channel], 126));
      split_plane<forward_threads>(g_.p, scale, thread_, patch + channel * g_.p.plane);
    }
    back_ = pairs::power_of_two(-exponent);
    __syncthreads();
  }

  __device__ void copy_weights(int turn, int slot) {
    const int each = columns_ * lanes;
    const int count = min(steps_a_turn, g_.steps - turn * steps_a_turn) * each;
    const uint4* const from = g_.pieces + (std::int64_t(blockIdx.y) * g_.steps + turn * steps_a_turn) * each;
    uint4* const to = weights_ + slot * steps_a_turn * each;
    for (int i = thread_; i < count; i += forward_threads)
      small_fft::async_copy_once(reinterpret_cast<Four*>(to + i), reinterpret_cast<const Four*>(from + i), true);
  }

  __device__ void begin(int index) {
    const Tile at = tile_of(g_.p, index);
#pragma unroll
    for (int i = 0; i < 2 * Rows; ++i) windows_[i] = position_of(g_.p, at, first_position_ + 8 * i).window * word_bytes;
#pragma unroll
    for (float& sum : sums_) sum = 0;
  }
  __device__ void multiply_resident(int index, const float* patch) {
    begin(index);
    for (int s = 0; s < g_.steps; ++s) multiply(patch, s, s);
  }
  // While the weights of a turn are multiplied, those of the next are there or on their way.
  __device__ void multiply_by_turns(int index, const float* patch) {
    copy_weights(0, 0);
    small_fft::commit_group();
    copy_weights(1, 1);
    small_fft::commit_group();
    begin(index);
    int slot = 0;
    for (int turn = 0; turn < g_.turns; ++turn) {
      small_fft::wait_group<1>();
      __syncthreads();
      if (turn + 2 < g_.turns) copy_weights(turn + 2, slot == 0 ? 2 : slot - 1);
      small_fft::commit_group();
      const int last = min(steps_a_turn, g_.steps - turn * steps_a_turn);
      for (int s = 0; s < last; ++s) multiply(patch, turn * steps_a_turn + s, slot * steps_a_turn + s);
      slot = slot == ring - 1 ? 0 : slot + 1;
    }
  }

  // The products of a step, from zero: the tensor core cuts digits off where it adds. Small terms go first.
  __device__ void multiply(const float* patch, int s, int slot) {
    const int4 offset = reinterpret_cast<const int4*>(offsets_)[s * 4 + lane_ % 4];
    small_fft::Fragment high[Rows], low[Rows];
#pragma unroll
    for (int i = 0; i < 2 * Rows; ++i) {
      const char* const window = bytes_from(patch, windows_[i]);
      const std::uint32_t a = word_at(window, offset.x), b = word_at(window, offset.y);
      const std::uint32_t c = word_at(window, offset.z), d = word_at(window, offset.w);
      high[i / 2].at[i % 2] = lower_halves(a, b), high[i / 2].at[2 + i % 2] = lower_halves(c, d);
      low[i / 2].at[i % 2] = upper_halves(a, b), low[i / 2].at[2 + i % 2] = upper_halves(c, d);
    }
    const uint4* const weights = weights_ + (slot * columns_ + first_column_) * lanes + lane_;
#pragma unroll
    for (int j = 0; j < Columns; j += 2) {
      const uint4 weight[2] = {weights[j * lanes], weights[(j + 1) * lanes]};
      float products[2][Rows][4] = {};
      const auto add = [&](const small_fft::Fragment(&x)[Rows], bool low_weights) {
#pragma unroll
        for (int c = 0; c < 2; ++c)
#pragma unroll
          for (int i = 0; i < Rows; ++i)
            small_fft::multiply(x[i], low_weights ? weight[c].z : weight[c].x, low_weights ? weight[c].w : weight[c].y,
                                products[c][i]);
      };
      if constexpr (Pairs) add(low, false), add(high, true);
      add(high, false);
#pragma unroll
      for (int c = 0; c < 2; ++c)
#pragma unroll
        for (int i = 0; i < Rows; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e) sums_[(i * Columns + j + c) * 4 + e] += products[c][i][e];
    }
  }

  // The power of two between keeps the factor within range wherever the result is.
  __device__ void store(int index) {
    constexpr int between = 2 * pairs::top_exponent;
    const Tile at = tile_of(g_.p, index);
    const float back_of_patch = back_ * pairs::power_of_two(between), least = g_.relu ? 0 : -INFINITY;
    float* const y = g_.y + (std::int64_t(at.image) * g_.filters + first_filter_) * g_.p.places();
    int places[2 * Rows];
#pragma unroll
    for (int i = 0; i < 2 * Rows; ++i) places[i] = position_of(g_.p, at, first_position_ + 8 * i).place;
    const int filters = g_.filters - first_filter_;
#pragma unroll
    for (int j = 0; j < Columns; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int filter = (first_column_ + j) * column + lane_ % 4 * 2 + e;
        const float back = back_of_filters_[filter] * back_of_patch, bias = bias_[filter];
        const int plane = filter * g_.p.places();
#pragma unroll
        for (int i = 0; i < 2 * Rows; ++i) {
          const float sum = sums_[(i / 2 * Columns + j) * 4 + i % 2 * 2 + e] * pairs::power_of_two(-between);
          const float value = fmaf(sum, back, bias);
          if (filter < filters && places[i] >= 0) y[plane + places[i]] = value < least ? least : value;
        }
      }
  }

  const ForwardArguments& g_;
  int columns_, first_filter_;                                                // of the block; filters in eights
  float *patches_, *back_of_filters_ = nullptr, *bias_ = nullptr, back_ = 0;  // back_ takes the patch's scale back
  uint4* weights_ = nullptr;
  int *offsets_ = nullptr, *exponents_ = nullptr, *tops_ = nullptr;
  int thread_, lane_, first_position_ = 0, first_column_ = 0;
  int windows_[2 * Rows] = {};  // in bytes
  float sums_[Rows * Columns * 4] = {};
};

template <int Columns, bool Pairs>
__global__ void __launch_bounds__(forward_threads, 2) forward_kernel(const ForwardArguments g) {
  extern __shared__ Four forward_memory[];
  Forward<Columns, Pairs>(g, reinterpret_cast<float*>(forward_memory)).run();
}

}  // namespace twiddle::implicit_gemm
