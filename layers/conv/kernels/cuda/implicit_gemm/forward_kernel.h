#pragma once
#include "fft/cuda/device/wgmma_of_registers.h"
#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "layers/conv/kernels/cuda/implicit_gemm/patch_block.h"

// y = x * w as a matrix product of which rows are positions, columns are filters, and k are taps.
namespace twiddle::implicit_gemm {

constexpr int forward_warps = 8, forward_threads = forward_warps * lanes;
constexpr int forward_rows = 2;               // of a warp, of 16 positions each
constexpr int short_ring = 3, long_ring = 6;  // turns in a ring if shared memory cannot hold all

// Offsets in a block's shared memory, in floats.
struct ForwardPlaces {
  int weights, offsets, back_of_filters, bias, exponents, tops, all;
  ForwardPlaces(const Patches& p, int buffers, int slots, int filters, int turns)
      : weights(static_cast<int>(quotient_up(buffers * p.floats(), atom) * atom)),
        offsets(weights + slots * filters * depth_of_turn),  // two fp16 values are as large as a float
        back_of_filters(offsets + turns * depth_of_turn),
        bias(back_of_filters + filters),
        exponents(bias + filters),
        tops(exponents + p.channels),
        all(tops + forward_warps) {}

 private:
  static constexpr int atom = 128;  // where matrices for wgmma begin
};

struct ForwardArguments {
  Patches p;
  ForwardPlaces places;
  int tiles, filters, turns;
  int warps_across;  // of a block, with other filters; the rest: other positions
  int slots;         // turns of weights in shared memory: all, or a ring
  int buffers;       // patches in shared memory: with two, the next one is loaded while one is multiplied
  const float *x, *bias;
  bool relu;
  const int *exponents, *offsets;
  const float* back;
  const __half* fp16;
  float* y;
};

// A warp has 32 positions and 8 Columns filters: by mma.sync twice 16 that follow each other, by wgmma 16 of each 64
// that four warps multiply together.
template <bool ByWgmma, int Columns, bool Pairs>
class Forward {
 public:
  __device__ Forward(const ForwardArguments& g, float* shared)
      : g_(g),
        filters_(g.warps_across * Columns * column),
        first_filter_(static_cast<int>(blockIdx.y) * filters_),
        patches_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % lanes) {
    const int warp = thread_ / lanes, group = warp / warps_together, across = group % g.warps_across;
    first_row_ = across * Columns * column;
    first_position_ = group / g.warps_across * warps_together * Rows * row_tile + warp % warps_together * row_tile;
    first_position_ += lane_ / 4;
    weights_ = reinterpret_cast<__half*>(shared + g.places.weights);
    offsets_ = reinterpret_cast<int*>(shared + g.places.offsets);
    back_of_filters_ = shared + g.places.back_of_filters;
    bias_ = shared + g.places.bias;
    exponents_ = reinterpret_cast<int*>(shared + g.places.exponents);
    tops_ = reinterpret_cast<int*>(shared + g.places.tops);
  }

  __device__ void run() {
    for (int i = thread_; i < g_.turns * depth_of_turn; i += forward_threads) offsets_[i] = g_.offsets[i];
    for (int i = thread_; i < filters_; i += forward_threads) {
      const int filter = first_filter_ + i;
      back_of_filters_[i] = filter < g_.filters ? g_.back[filter] : 0;
      bias_[i] = filter < g_.filters && g_.bias != nullptr ? g_.bias[filter] : 0;
    }
    for (int i = thread_; i < g_.p.channels; i += forward_threads) exponents_[i] = g_.exponents[i];
    int index = static_cast<int>(blockIdx.x), buffer = 0;
    if (index >= g_.tiles) return;
    if (g_.slots == g_.turns)
      for (int turn = 0; turn < g_.turns; ++turn) copy_weights(turn, turn);
    copy(index, patches_);
    for (; index < g_.tiles; index += static_cast<int>(gridDim.x)) {
      const int next = index + static_cast<int>(gridDim.x);
      float* const patch = patches_ + buffer * g_.p.floats();
      arrived<0>();
      const bool ahead = g_.buffers == 2 && next < g_.tiles;
      if (ahead) copy(next, patches_ + (buffer ^ 1) * g_.p.floats());
      if (g_.slots == g_.turns)
        split(patch), multiply_resident(index, patch);
      else if (g_.slots == long_ring)
        multiply_by_turns<long_ring>(index, patch);
      else
        multiply_by_turns<short_ring>(index, patch);
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
  static constexpr int Rows = forward_rows, warps_together = ByWgmma ? 4 : 1;
  using Products = float[Columns * 4];

  // All but the latest copies, of all threads.
  template <int InFlight>
  __device__ void arrived() {
    small_fft::wait_group<InFlight>();
    if constexpr (ByWgmma) small_fft::show_to_wgmma();
    __syncthreads();
  }
  // Returns a position of this thread's rows, two for each 16 positions.
  __device__ int position(int i) const { return first_position_ + i / 2 * warps_together * row_tile + i % 2 * 8; }

  __device__ void copy(int index, float* patch) {
    copy_patch<forward_threads>(g_.p, g_.x, tile_of(g_.p, index), thread_, patch);
    small_fft::commit_group();
  }

  // Scales the patch by one power of two, in addition to those of its channels.
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
    const int each = filters_ * depth_of_turn * 2, at_once = sizeof(Four) / sizeof(__half);
    const __half* const from = g_.fp16 + (std::int64_t(blockIdx.y) * g_.turns + turn) * each;
    __half* const to = weights_ + slot * each;
    for (int i = thread_ * at_once; i < each; i += forward_threads * at_once)
      small_fft::async_copy_once(reinterpret_cast<Four*>(to + i), reinterpret_cast<const Four*>(from + i), true);
  }

  __device__ void begin(int index) {
    const Tile at = tile_of(g_.p, index);
#pragma unroll
    for (int i = 0; i < 2 * Rows; ++i) windows_[i] = position_of(g_.p, at, position(i)).window * word_bytes;
#pragma unroll
    for (Products& sums : sums_)
#pragma unroll
      for (float& sum : sums) sum = 0;
  }
  __device__ void multiply_resident(int index, const float* patch) {
    begin(index);
#pragma unroll 1
    for (int turn = 0; turn < g_.turns; ++turn) multiply(patch, turn, turn);
  }
  // While the weights of a turn are multiplied, those of the next turn are loaded or in flight.
  template <int Ring>
  __device__ void multiply_by_turns(int index, float* patch) {
    const auto ask_for = [&](int turn, int slot) {
      if (turn < g_.turns) copy_weights(turn, slot);
      small_fft::commit_group();
    };
    for (int turn = 0; turn + 1 < Ring; ++turn) ask_for(turn, turn);
    split(patch);
    begin(index);
    int slot = 0;
#pragma unroll 1
    for (int turn = 0; turn < g_.turns; ++turn) {
      arrived<Ring - 2>();
      ask_for(turn + Ring - 1, slot == 0 ? Ring - 1 : slot - 1);
      multiply(patch, turn, slot);
      slot = slot == Ring - 1 ? 0 : slot + 1;
    }
  }

  // Gathers a tensor core operand from the patch: 16 positions and 16 k.
  __device__ void gather(const float* patch, int s, int row, small_fft::Fragment& high,
                         small_fft::Fragment& low) const {
    const int4 offset = reinterpret_cast<const int4*>(offsets_)[s * 4 + lane_ % 4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const char* const window = bytes_from(patch, windows_[2 * row + i]);
      const std::uint32_t a = word_at(window, offset.x), b = word_at(window, offset.y);
      const std::uint32_t c = word_at(window, offset.z), d = word_at(window, offset.w);
      high.at[i] = lower_halves(a, b), high.at[2 + i] = lower_halves(c, d);
      low.at[i] = upper_halves(a, b), low.at[2 + i] = upper_halves(c, d);
    }
  }

  // Computes the products of a turn, starting from zero: tensor cores truncate sums. Small terms are added first.
  __device__ void multiply(const float* patch, int turn, int slot) {
    const int matrix = filters_ * depth_of_turn;
    const __half* const weights = weights_ + slot * 2 * matrix + first_row_ * depth_of_turn;
    if constexpr (ByWgmma) {
#pragma unroll
      for (int row = 0; row < Rows; ++row) multiply_by_wgmma(patch, turn, row, weights, weights + matrix);
    } else {
#pragma unroll 1
      for (int i = 0; i < steps_a_turn; ++i) multiply_by_mma(patch, turn * steps_a_turn + i, i, weights, matrix);
    }
  }
  __device__ void multiply_by_wgmma(const float* patch, int turn, int row, const __half* high_weights,
                                    const __half* low_weights) {
    small_fft::Fragment high[steps_a_turn], low[steps_a_turn];
#pragma unroll
    for (int i = 0; i < steps_a_turn; ++i) gather(patch, turn * steps_a_turn + i, row, high[i], low[i]);
    const std::uint64_t b_high = small_fft::matrix_for_wgmma(high_weights);
    const std::uint64_t b_low = small_fft::matrix_for_wgmma(low_weights);
    constexpr int next = small_fft::steps_for_wgmma(step);
    Products products;
    small_fft::begin_wgmma();
    if constexpr (Pairs) {
      small_fft::multiply_by_wgmma<1, false>(products, low[0], b_high);
      small_fft::multiply_by_wgmma<1, true>(products, low[1], b_high + next);
      small_fft::multiply_by_wgmma<1, true>(products, high[0], b_low);
      small_fft::multiply_by_wgmma<1, true>(products, high[1], b_low + next);
    }
    small_fft::multiply_by_wgmma<1, Pairs>(products, high[0], b_high);
    small_fft::multiply_by_wgmma<1, true>(products, high[1], b_high + next);
    small_fft::commit_wgmma();
    small_fft::wait_for_wgmma();
#pragma unroll
    for (int i = 0; i < Columns * 4; ++i) sums_[row][i] += products[i];
  }
  __device__ void multiply_by_mma(const float* patch, int s, int step_of_turn, const __half* weights, int matrix) {
    small_fft::Fragment high[Rows], low[Rows];
#pragma unroll
    for (int row = 0; row < Rows; ++row) gather(patch, s, row, high[row], low[row]);
    const __half* const from =
        weights + lane_ / 16 * matrix + small_fft::place_of_piece(lane_ % 8, 2 * step_of_turn + lane_ / 8 % 2);
#pragma unroll
    for (int j = 0; j < Columns; j += 2) {
      small_fft::Fragment weight[2];  // high, high, low, low
      float products[2][Rows][4] = {};
#pragma unroll
      for (int c = 0; c < 2; ++c) weight[c] = small_fft::load_fragment(from + (j + c) * column * depth_of_turn);
      const auto add = [&](const small_fft::Fragment(&x)[Rows], int first) {
#pragma unroll
        for (int c = 0; c < 2; ++c)
#pragma unroll
          for (int row = 0; row < Rows; ++row)
            small_fft::multiply(x[row], weight[c].at[first], weight[c].at[first + 1], products[c][row]);
      };
      if constexpr (Pairs) add(low, 0), add(high, 2);
      add(high, 0);
#pragma unroll
      for (int c = 0; c < 2; ++c)
#pragma unroll
        for (int row = 0; row < Rows; ++row)
#pragma unroll
          for (int e = 0; e < 4; ++e) sums_[row][(j + c) * 4 + e] += products[c][row][e];
    }
  }

  // The powers of two, one for each factor, keep their product within range wherever the result is.
  __device__ void store(int index) {
    constexpr int up = pairs::top_exponent;
    const Tile at = tile_of(g_.p, index);
    const float back_of_patch = back_ * pairs::power_of_two(up), least = g_.relu ? 0 : -INFINITY;
    float* const y = g_.y + (std::int64_t(at.image) * g_.filters + first_filter_) * g_.p.places();
    int places[2 * Rows];
#pragma unroll
    for (int i = 0; i < 2 * Rows; ++i) places[i] = position_of(g_.p, at, position(i)).place;
    const int filters = g_.filters - first_filter_;
#pragma unroll
    for (int j = 0; j < Columns; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int filter = first_row_ + j * column + lane_ % 4 * 2 + e;
        const float back = back_of_filters_[filter] * pairs::power_of_two(up) * back_of_patch, bias = bias_[filter];
        const int plane = filter * g_.p.places();
#pragma unroll
        for (int i = 0; i < 2 * Rows; ++i) {
          const float sum = sums_[i / 2][j * 4 + i % 2 * 2 + e] * pairs::power_of_two(-2 * up);
          const float value = fmaf(sum, back, bias);
          if (filter < filters && places[i] >= 0) y[plane + places[i]] = value < least ? least : value;
        }
      }
  }

  const ForwardArguments& g_;
  int filters_, first_filter_;                                                // of the block
  float *patches_, *back_of_filters_ = nullptr, *bias_ = nullptr, back_ = 0;  // back_ takes the patch's scale back
  __half* weights_ = nullptr;
  int *offsets_ = nullptr, *exponents_ = nullptr, *tops_ = nullptr;
  int thread_, lane_;
  int first_position_ = 0, first_row_ = 0;  // of the tile, and among the block's filters
  int windows_[2 * Rows] = {};              // in bytes
  Products sums_[Rows] = {};
};

struct alignas(512) ForwardMemory {
  float at[128];
};

template <bool ByWgmma, int Columns, bool Pairs>
__global__ void __launch_bounds__(forward_threads, 2) forward_kernel(const ForwardArguments g) {
  extern __shared__ ForwardMemory forward_memory[];
  Forward<ByWgmma, Columns, Pairs>(g, forward_memory->at).run();
}

// For `columns` groups of eight filters per warp.
template <bool ByWgmma>
void launch_forward(Stream& stream, const ForwardArguments& arguments, int columns, bool pairs, dim3 grid,
                    std::size_t shared) {
  const auto kernel = columns == 8   ? (pairs ? forward_kernel<ByWgmma, 8, true> : forward_kernel<ByWgmma, 8, false>)
                      : columns == 6 ? (pairs ? forward_kernel<ByWgmma, 6, true> : forward_kernel<ByWgmma, 6, false>)
                                     : (pairs ? forward_kernel<ByWgmma, 4, true> : forward_kernel<ByWgmma, 4, false>);
  twiddle::detail::allow_all_shared_memory(kernel, stream.device());
  kernel<<<grid, forward_threads, shared, twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

// The first is compiled for sm_90a alone (sm_90a/), the second for every architecture, to do nothing below sm_80.
void launch_forward_by_wgmma(Stream& stream, const ForwardArguments& arguments, int columns, bool pairs, dim3 grid,
                             std::size_t shared);
void launch_forward_by_mma(Stream& stream, const ForwardArguments& arguments, int columns, bool pairs, dim3 grid,
                           std::size_t shared);

}  // namespace twiddle::implicit_gemm
