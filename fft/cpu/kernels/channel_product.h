#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/vector.h"

// Products of depthwise convolutions: one channel per lane.
namespace twiddle {
namespace {

// a b, or a conj(b).
template <int lanes, bool conjugate_b>
[[gnu::always_inline]] inline Complex<lanes> product(const Complex<lanes>& a, const Complex<lanes>& b) {
  if constexpr (conjugate_b) return {a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <int lanes, bool conjugate_b, bool past_caches>
void multiply_channels(const ChannelProducts& p) {
  constexpr std::int64_t dense = 2 * lanes;
  for (std::int64_t bin = 0; bin < p.bins; ++bin) {
    const float *a = p.a + bin * p.a_bin, *const b = p.b + bin * p.b_bin;
    float* c = p.c + bin * p.c_bin;
    for (std::int64_t row = 0; row < p.rows; ++row)
      for (std::int64_t block = 0; block < p.blocks; ++block, a += dense, c += dense) {
        const Complex<lanes> value =
            product<lanes, conjugate_b>(load_complex<lanes>(a), load_complex<lanes>(b + block * dense));
        if constexpr (past_caches)
          stream_complex<lanes>(c, value);
        else
          store_complex<lanes>(c, value);
      }
  }
  if constexpr (past_caches) Special<lanes>::finish_streams();
}

template <int lanes>
void multiply_channels(const ChannelProducts& products) {
  const auto run = products.conjugate_b   ? products.past_caches ? multiply_channels<lanes, true, true>
                                                                 : multiply_channels<lanes, true, false>
                     : products.past_caches ? multiply_channels<lanes, false, true>
                                          : multiply_channels<lanes, false, false>;
  run(products);
}

// Returns the sum of `blocks` blocks over all rows, in the order of rows. It is split into stretches, as longer fp32
// sums lose accuracy.
template <int lanes, int blocks>
void sum_blocks(const ChannelProducts& p, const float* a, const float* b, float* c) {
  constexpr std::int64_t dense = 2 * lanes, stretch = 64;
  Complex<lanes> totals[blocks] = {};
  for (std::int64_t begin = 0; begin < p.rows; begin += stretch) {
    Complex<lanes> sums[blocks] = {};
    const std::int64_t end = begin + stretch < p.rows ? begin + stretch : p.rows;
    for (std::int64_t row = begin; row < end; ++row, a += p.blocks * dense, b += p.blocks * dense)
#pragma GCC unroll 16
      for (int block = 0; block < blocks; ++block) {
        const Complex<lanes> left = load_complex<lanes>(a + block * dense);
        sums[block] = sums[block] + product<lanes, true>(load_complex<lanes>(b + block * dense), left);
      }
#pragma GCC unroll 16
    for (int block = 0; block < blocks; ++block) totals[block] = totals[block] + sums[block];
  }
#pragma GCC unroll 16
  for (int block = 0; block < blocks; ++block, c += dense)
    store_complex<lanes>(c, p.accumulate ? load_complex<lanes>(c) + totals[block] : totals[block]);
}

template <int lanes>
void sum_channels(const ChannelProducts& p) {
  constexpr std::int64_t dense = 2 * lanes, wide = 2;
  for (std::int64_t bin = 0; bin < p.bins; ++bin) {
    const float *a = p.a + bin * p.a_bin, *b = p.b + bin * p.b_bin;
    float* c = p.c + bin * p.c_bin;
    std::int64_t block = 0;
    for (; block + wide <= p.blocks; block += wide, a += wide * dense, b += wide * dense, c += wide * dense)
      sum_blocks<lanes, wide>(p, a, b, c);
    if (block < p.blocks) sum_blocks<lanes, 1>(p, a, b, c);
  }
}

}  // namespace
}  // namespace twiddle
