#pragma once
#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/weight_shared.h"
#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/wide_wgmma.h"

namespace twiddle::tap_shifts {

// Sums of the three taps of a kernel's row. A thread has of each eight channels two adjacent ones, of two filters.
template <bool Pairs>
class Summing {
 public:
  __device__ Summing(const WeightArguments& g, const WeightPlaces& places, const WeightShared& s, int kernel_row,
                     int thread)
      : g_(g),
        places_(places),
        s_(s),
        kernel_row_(kernel_row),
        warp_(thread / lanes),
        lane_(thread % lanes),
        pitch_(g.t.pitch()),
        pixels_(g.t.pixels()) {}

  __device__ void run() {
    Turn turn;
    for (int tile = part_of_block(g_); tile < g_.t.tiles(); tile += parts(g_)) {
      s_.is_there[turn.stage].wait(turn.phase);
      const int4 changed = *reinterpret_cast<const int4*>(s_.changed + turn.stage * splitting_warps);
      if ((changed.x | changed.y | changed.z | changed.w) != 0) follow(turn.stage);
      add_tile(small_fft::shared_address(s_.stages) + turn.stage * places_.bytes_of_stage);
      s_.is_free[turn.stage].arrive();
      turn.advance(1, weight_stages);
    }
    store();
  }

 private:
  static constexpr int count = channel_octets(Pairs) * 4, steps = strips;  // of 16 positions each, in a turn

  __device__ int channel_of(int i) const { return i / 4 * octet + lane_ % 4 * 2 + i % 2; }  // of the block
  __device__ int filter_of(int i) const { return warp_ * 16 + lane_ / 4 + i / 2 % 2 * 8; }

  __device__ void follow(int stage) {
    const float* const factors = s_.factors + stage * 2 * block_filters;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float factor = factors[channel_of(i)] * factors[block_filters + filter_of(i)];
#pragma unroll
      for (auto& tap : sums_) tap[i] *= factor;
    }
  }

  // Operands of 16 positions, k of a wgmma: eight columns of two rows.
  struct Operands {
    small_fft::Fragment high, low;  // of filters
    std::uint64_t x;
  };
  __device__ void add_tile(unsigned stage) {
    constexpr int columns = strips * octet;
    // This lane's row of a matrix of eight pixels and eight filters. Of four matrices, those with odd numbers have the
    // next filters, and the last two the next row of pixels.
    const int of_lane = (2 * warp_ + lane_ / 8 % 2) * g_.t.positions() + lane_ / 16 * columns + lane_ % 8;
    const unsigned y = stage + places_.bytes_of_x + of_lane * 16, low = filter_octets * g_.t.positions() * 16;
    const std::uint64_t x = matrix_of_vectors(stage + kernel_row_ * pitch_ * 16, pitch_, pixels_);
#pragma unroll 1
    for (int turn = 0; turn < short_strip / 2; ++turn) {
      Operands operands[steps];
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        const unsigned from = y + (2 * turn * columns + k * octet) * 16;
        operands[k].high = load_turned(from);
        if constexpr (Pairs) operands[k].low = load_turned(from + low);
        operands[k].x = x + 2 * turn * pitch_ + k * octet;
      }
      add_turn(operands);
    }
  }
  __device__ static small_fft::Fragment load_turned(unsigned address) {
    small_fft::Fragment to;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
                 : "r"(address)
                 : "memory");
    return to;
  }
  __device__ void add_turn(const Operands (&o)[steps]) {
    if constexpr (Pairs) {  // while the next tap is multiplied, sums follow those of the last
      float even[count], odd[count];
      small_fft::begin_wgmma();
      multiply_pairs(o, 0, even);
      small_fft::commit_wgmma();
      multiply_pairs(o, 1, odd);
      small_fft::commit_wgmma();
      small_fft::wait_for_wgmma<1>();
      add(even, 0);
      small_fft::begin_wgmma();
      multiply_pairs(o, 2, even);
      small_fft::commit_wgmma();
      small_fft::wait_for_wgmma<1>();
      add(odd, 1);
      small_fft::wait_for_wgmma();
      add(even, 2);
    } else {
      small_fft::begin_wgmma();
#pragma unroll
      for (int k = 0; k < steps; ++k)
#pragma unroll
        for (int tap = 0; tap < side; ++tap) multiply_pixels<true>(sums_[tap], o[k].high, o[k].x + tap);
      small_fft::commit_wgmma();
      small_fft::wait_for_wgmma();
    }
  }
  __device__ void add(const float (&products)[count], int tap) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums_[tap][i] += products[i];
  }
  // Starts from zero, small terms first, as tensor cores truncate sums.
  __device__ void multiply_pairs(const Operands (&o)[steps], int tap, float (&products)[count]) const {
    const int low = channel_octets(Pairs) * pixels_;
    multiply_pixels<false>(products, o[0].low, o[0].x + tap);
    multiply_pixels<true>(products, o[1].low, o[1].x + tap);
    multiply_pixels<true>(products, o[0].high, o[0].x + tap + low);
    multiply_pixels<true>(products, o[1].high, o[1].x + tap + low);
    multiply_pixels<true>(products, o[0].high, o[0].x + tap);
    multiply_pixels<true>(products, o[1].high, o[1].x + tap);
  }

  __device__ void store() const {
    const int first_channel = channel_block(g_) * channel_octets(Pairs) * octet;
    const int first_filter = filter_block() * block_filters;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int channel = first_channel + channel_of(i), filter = first_filter + filter_of(i);
      if (channel >= g_.t.channels || filter >= g_.t.filters) continue;
      // Two powers of two, as one might not be finite.
      const int back = -s_.exponents[channel_of(i)] - s_.exponents[block_filters + filter_of(i)], half = back / 2;
      const std::int64_t kernel = (std::int64_t(part_of_block(g_)) * g_.t.filters + filter) * g_.t.channels + channel;
      float* const to = g_.partial + kernel * taps + kernel_row_ * side;
#pragma unroll
      for (int tap = 0; tap < side; ++tap)
        to[tap] = sums_[tap][i] * pairs::power_of_two(half) * pairs::power_of_two(back - half);
    }
  }

  const WeightArguments& g_;
  const WeightPlaces& places_;
  const WeightShared& s_;
  int kernel_row_, warp_, lane_, pitch_, pixels_;
  float sums_[side][count] = {};
};

}  // namespace twiddle::tap_shifts
