#pragma once
#include <cmath>
#include <type_traits>

#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "layers/conv/kernels/cuda/tap_shifts/forward_arguments.h"
#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/wide_wgmma.h"

// Two groups of four warps load patches, chunk by chunk in turn, and split them; two groups multiply them by the
// filters' taps, a strip each.
namespace twiddle::tap_shifts {

constexpr int registers_of_multiplying = 168, registers_of_loading = 88;  // of 128 each at the start

struct ForwardShared {
  char *weights, *patches;
  float *scales, *back, *bias, *back_of_stages;
  int *scaled, *tops;
  small_fft::Barrier *is_there, *is_free, *weights_are_there;
  __device__ ForwardShared(char* base, const ForwardPlaces& p)
      : weights(base),
        patches(base + p.patches),
        scales(reinterpret_cast<float*>(base + p.scales)),
        back(reinterpret_cast<float*>(base + p.back)),
        bias(reinterpret_cast<float*>(base + p.bias)),
        back_of_stages(reinterpret_cast<float*>(base + p.back_of_stages)),
        scaled(reinterpret_cast<int*>(base + p.scaled)),
        tops(reinterpret_cast<int*>(base + p.tops)),
        is_there(reinterpret_cast<small_fft::Barrier*>(base + p.barriers)),
        is_free(is_there + most_stages),
        weights_are_there(is_free + most_stages) {}
};

// A group that loads every other chunk. Its number is a constant, so that what all its threads share stays in the
// registers of the warp.
template <bool Pairs, int Group>
class Loading {
 public:
  __device__ Loading(const ForwardArguments& g, const ForwardPlaces& places, const ForwardShared& s, int thread)
      : g_(g),
        places_(places),
        s_(s),
        thread_(thread),
        pixels_(g.t.pixels()),
        area_(static_cast<unsigned>(g.t.height) * static_cast<unsigned>(g.t.width)) {
    const int pitch = g.t.pitch();
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const int pixel = thread + i * group_threads;
      row_[i] = pixel / pitch, column_[i] = pixel - row_[i] * pitch;
      if (pixel >= pixels_) row_[i] = outside;
    }
  }

  __device__ void run() {
    Turn turn;
    turn.advance(Group, g_.stages);
    int tile = static_cast<int>(blockIdx.x);
    for (int chunk = Group;; chunk += loading_groups) {
      for (; chunk >= g_.chunks; chunk -= g_.chunks) tile += static_cast<int>(gridDim.x);
      if (tile >= g_.t.tiles()) return;
      load(origin_of(g_.t, tile), chunk);
      const float back = scale(chunk);
      s_.is_free[turn.stage].wait(turn.phase ^ 1);
      if (!g_.resident && thread_ == 0) load_weights(chunk, turn.stage);
      store(s_.patches + turn.stage * places_.bytes_of_patch);
      if (thread_ == 0) s_.back_of_stages[turn.stage] = back;
      signal(s_.is_there[turn.stage]);
      turn.advance(loading_groups, g_.stages);
    }
  }

 private:
  static constexpr int octets = depth / octet, outside = -(1 << 30);

  // After the last channel, the last one is loaded again, with its scale; its weights are zero.
  __device__ void load(const Origin& at, int chunk) {
    const int left = g_.t.channels - chunk * depth;
    const float* const plane = g_.x + (std::int64_t(at.image) * g_.t.channels + chunk * depth) * area_;
    const float* from[rounds];
    bool inside[rounds];
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const int row = at.row - g_.t.pad_h + row_[i], column = at.column - g_.t.pad_w + column_[i];
      inside[i] = static_cast<unsigned>(row) < static_cast<unsigned>(g_.t.height) &&
                  static_cast<unsigned>(column) < static_cast<unsigned>(g_.t.width);
      from[i] = plane + (row * g_.t.width + column);
      asm("" : "+l"(from[i]));  // an address: as a sum it would be recomputed for each channel
    }
#pragma unroll
    for (int o = 0; o < octets; ++o)
#pragma unroll
      for (int j = 0; j < octet; ++j)
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
          v_[o][i][j] = 0;
          if (inside[i]) v_[o][i][j] = __ldg(from[i] + plane_of(o, j, left));
        }
  }
  __device__ unsigned plane_of(int o, int j, int left) const {
    return static_cast<unsigned>(min(o * octet + j, left - 1)) * area_;
  }

  // Scales the chunk of the patch by one power of two, in addition to those of its channels. Returns the inverse.
  __device__ float scale(int chunk) {
    if (s_.scaled[chunk]) for_all([&](float& value, int channel, int) { value *= s_.scales[chunk * depth + channel]; });
    const int exponent = min(pairs::scale_of_row(largest()), 126 - pairs::top_exponent - spare);
    const float by = pairs::power_of_two(exponent);
    for_all([&](float& value, int, int) { value *= by; });
    return pairs::power_of_two(-exponent - pairs::top_exponent - spare);
  }
  // The largest finite magnitude of the group's.
  __device__ float largest() {
    float of_round[rounds] = {};  // three chains are shorter than one
    for_all([&](float value, int, int i) { of_round[i] = fmaxf(of_round[i], fabsf(value)); });
    float most = fmaxf(fmaxf(of_round[0], of_round[1]), of_round[2]);
    if (most == INFINITY) {
      most = 0;
      for_all([&](float value, int, int) { most = fabsf(value) < INFINITY ? fmaxf(most, fabsf(value)) : most; });
    }
    const int of_warp = __reduce_max_sync(0xffffffffu, __float_as_int(most));
    int* const tops = s_.tops + (Group * 2 + parity_) * 4;
    parity_ ^= 1;  // those of the last chunk may still be read
    if (thread_ % lanes == 0) tops[thread_ / lanes] = of_warp;
    group_barrier(Group + 1);
    return __int_as_float(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
  }
  template <class Function>
  __device__ void for_all(const Function& function) {
#pragma unroll
    for (int o = 0; o < octets; ++o)
#pragma unroll
      for (int j = 0; j < octet; ++j)
#pragma unroll
        for (int i = 0; i < rounds; ++i) function(v_[o][i][j], o * octet + j, i);
  }

  __device__ void load_weights(int chunk, int stage) {
    const std::int64_t from = (std::int64_t(blockIdx.y) * g_.chunks + chunk) * values_of_chunk(Pairs);
    s_.is_there[stage].load(s_.weights + stage * places_.bytes_of_weights, g_.weights + from, places_.bytes_of_weights);
  }

  // [high, low][octet][pixel]
  __device__ void store(char* patch) {
#pragma unroll
    for (int o = 0; o < octets; ++o)
#pragma unroll
      for (int i = 0; i < rounds; ++i) {
        const SplitOctet split = split_octet(v_[o][i]);
        if (row_[i] == outside) continue;
        uint4* const to = reinterpret_cast<uint4*>(patch) + o * pixels_ + thread_ + i * group_threads;
        to[0] = split.high;
        if constexpr (Pairs) to[octets * pixels_] = split.low;
      }
  }
  __device__ void signal(small_fft::Barrier& is_there) {
    small_fft::show_to_wgmma();
    if (!g_.resident && thread_ == 0)
      is_there.expect(places_.bytes_of_weights);
    else
      is_there.arrive();
  }

  const ForwardArguments& g_;
  const ForwardPlaces& places_;
  const ForwardShared& s_;
  int thread_, pixels_, parity_ = 0;
  unsigned area_;
  int row_[rounds], column_[rounds];  // of this thread's pixels, in the patch
  float v_[octets][rounds][octet] = {};
};

// A group that multiplies one of the two strips. A thread has of each of its rows two adjacent columns, of two filters.
template <bool Pairs, int Rows>
class Multiplying {
 public:
  using Sums = float[4 * Rows];
  __device__ Multiplying(const ForwardArguments& g, const ForwardPlaces& places, const ForwardShared& s, int strip,
                         int thread)
      : g_(g), places_(places), s_(s), thread_(thread), strip_(strip), pitch_(g.t.pitch()), pixels_(g.t.pixels()) {}

  __device__ void run() {
    const int pixel = g_.t.row_of_strip(strip_) * pitch_ + g_.t.column_of_strip(strip_);
    const unsigned weights = small_fft::shared_address(s_.weights);
    const unsigned patches = small_fft::shared_address(s_.patches) + pixel * 16;
    if (g_.resident) s_.weights_are_there->wait(0);
    Turn turn;
    for (int tile = static_cast<int>(blockIdx.x); tile < g_.t.tiles(); tile += static_cast<int>(gridDim.x)) {
      Sums sums = {};
      for (int chunk = 0; chunk < g_.chunks; ++chunk) {
        const int of_weights = g_.resident ? chunk : turn.stage;
        s_.is_there[turn.stage].wait(turn.phase);
        add_products(weights + of_weights * places_.bytes_of_weights, patches + turn.stage * places_.bytes_of_patch,
                     turn.stage, sums);
        turn.advance(1, g_.stages);
      }
      store(origin_of(g_.t, tile), sums);
    }
  }

 private:
  // Starts from zero, as tensor cores truncate sums.
  __device__ void add_products(unsigned weights, unsigned patch, int stage, Sums& sums) {
    Sums products;
    const std::uint64_t a = matrix_of_vectors(weights, block_filters, octet);
    const std::uint64_t b = matrix_of_vectors(patch, pixels_, pitch_);
    small_fft::begin_wgmma();
    if constexpr (Pairs) {  // small terms go first
      multiply_taps<false>(products, a, b + octets * pixels_);
      multiply_taps<true>(products, a + next, b);
    }
    multiply_taps<Pairs>(products, a, b);
    small_fft::commit_wgmma();
    const float back = s_.back_of_stages[stage];
    small_fft::wait_for_wgmma();
    s_.is_free[stage].arrive();
#pragma unroll
    for (int i = 0; i < 4 * Rows; ++i) sums[i] = fmaf(products[i], back, sums[i]);
  }
  // A tap is a place in the patch from which on the strip's pixels are read.
  template <bool Keep>
  __device__ void multiply_taps(Sums& products, std::uint64_t a, std::uint64_t b) {
#pragma unroll
    for (int row = 0; row < side; ++row)
#pragma unroll
      for (int column = 0; column < side; ++column) {
        const std::uint64_t of_tap = a + (row * side + column) * (Pairs ? 2 : 1) * next;
        if (Keep || row + column > 0)
          multiply_wide<true>(products, of_tap, b + row * pitch_ + column);
        else
          multiply_wide<false>(products, of_tap, b + row * pitch_ + column);
      }
  }

  __device__ void store(const Origin& at, const Sums& sums) const {
    const Tiling& t = g_.t;
    const int row = at.row + t.row_of_strip(strip_), column = at.column + t.column_of_strip(strip_);
    // Nothing is multiplied meanwhile, and conditions of each number take time: with pairs 3 % of all, but without them
    // stores that come all at once took as much more.
    if (Pairs && t.out_w % 2 == 0 && row + Rows <= t.out_h && column + octet <= t.out_w)
      store_strip<true>(at.image, row, column, sums);
    else
      store_strip<false>(at.image, row, column, sums);
  }
  template <bool Whole>
  __device__ void store_strip(int image, int row, int first_column, const Sums& sums) const {
    const Tiling& t = g_.t;
    const int lane = thread_ % lanes, column = first_column + lane % 4 * 2;
    const float least = g_.relu ? 0 : -INFINITY;
    const bool first_wanted = column < t.out_w, both_wanted = column + 1 < t.out_w, by_twos = t.out_w % 2 == 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int of_block = thread_ / lanes * 16 + lane / 4 + 8 * h;
      const int filter = static_cast<int>(blockIdx.y) * block_filters + of_block;
      if (filter >= t.filters) continue;
      const float back = s_.back[of_block], bias = s_.bias[of_block];
      const auto finished = [&](float sum) {
        const float value = fmaf(sum, back, bias);
        return value < least ? least : value;
      };
      float* to = g_.y + ((std::int64_t(image) * t.filters + filter) * t.out_h + row) * t.out_w + column;
#pragma unroll
      for (int i = 0; i < Rows; ++i, to += t.out_w) {
        if (!Whole && row + i >= t.out_h) continue;
        const float first = finished(sums[4 * i + 2 * h]), second = finished(sums[4 * i + 2 * h + 1]);
        if (Whole || (by_twos && both_wanted)) {
          __stcs(reinterpret_cast<float2*>(to), make_float2(first, second));
        } else {
          if (first_wanted) to[0] = first;
          if (both_wanted) to[1] = second;
        }
      }
    }
  }

  static constexpr int octets = depth / octet, next = matrix_values / octet;  // in vectors
  const ForwardArguments& g_;
  const ForwardPlaces& places_;
  const ForwardShared& s_;
  int thread_, strip_, pitch_, pixels_;
};

// By all threads, before they part.
template <bool Pairs>
__device__ void begin_forward(const ForwardArguments& g, const ForwardPlaces& places, const ForwardShared& s) {
  const int thread = static_cast<int>(threadIdx.x), channels = g.t.channels;
  if (thread < g.stages)
    s.is_there[thread].begin(group_threads), s.is_free[thread].begin(multiplying_groups * group_threads);
  if (thread == 0) s.weights_are_there->begin(1);
  for (int i = thread; i < g.chunks * depth; i += forward_threads) s.scales[i] = g.scales[min(i, channels - 1)];
  for (int i = thread; i < g.chunks; i += forward_threads) {
    s.scaled[i] = 0;
    for (int channel = i * depth; channel < min((i + 1) * depth, channels); ++channel)
      if (g.scales[channel] != 1) s.scaled[i] = 1;
  }
  if (thread < block_filters) {
    const int filter = static_cast<int>(blockIdx.y) * block_filters + thread;
    s.back[thread] = filter < g.t.filters ? g.back[filter] : 0;
    s.bias[thread] = filter < g.t.filters && g.bias != nullptr ? g.bias[filter] : 0;
  }
  small_fft::show_to_wgmma();  // and to the copy engine
  __syncthreads();
  if (!g.resident || thread > 0) return;
  s.weights_are_there->expect(g.chunks * places.bytes_of_weights);
  for (int i = 0; i < g.chunks; ++i) {
    const std::int64_t from = (std::int64_t(blockIdx.y) * g.chunks + i) * values_of_chunk(Pairs);
    s.weights_are_there->load(s.weights + i * places.bytes_of_weights, g.weights + from, places.bytes_of_weights);
  }
}

template <bool Pairs, int Rows>
__global__ void __launch_bounds__(forward_threads, 1) forward_kernel(const __grid_constant__ ForwardArguments g) {
  extern __shared__ __align__(128) char memory[];
  const ForwardPlaces places(g.t, g.chunks, g.stages, g.resident, Pairs);
  const ForwardShared s(memory, places);
  begin_forward<Pairs>(g, places, s);
  const int thread = static_cast<int>(threadIdx.x) % group_threads;
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / group_threads, 0);
  if (group < multiplying_groups) {
    small_fft::take_registers<registers_of_multiplying>();
    Multiplying<Pairs, Rows>(g, places, s, group, thread).run();
  } else {
    small_fft::give_registers<registers_of_loading>();
    if (group == multiplying_groups)
      Loading<Pairs, 0>(g, places, s, thread).run();
    else
      Loading<Pairs, 1>(g, places, s, thread).run();
  }
}

}  // namespace twiddle::tap_shifts
