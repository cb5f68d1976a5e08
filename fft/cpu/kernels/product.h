#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/vector.h"
#include "fft/cpu/kernels/with_constant.h"

namespace twiddle {
namespace {

// Returns the addresses to prefetch while a bin is multiplied: the factors of the next bin, first A and then B,
// `fetched` floats per k.
class NextBin {
 public:
  static constexpr int line = 16;  // floats of a cache line
  static constexpr int fetched = 2 * line;

  NextBin(const float* a, std::int64_t a_floats, const float* b, std::int64_t b_floats)
      : at_(a), end_(a + a_floats), next_(b), next_end_(b + b_floats) {}
  // Returns the address for the next `k` steps. After everything is prefetched, it returns `cached`, which is in the
  // cache already, so that the inner loop needs no condition.
  const float* take(std::int64_t k, const float* cached) {
    if (at_ >= end_) at_ = next_, end_ = next_end_, next_ = next_end_;
    if (at_ >= end_) return cached;
    const float* from = at_;
    at_ += k * fetched;
    return from;
  }

 private:
  const float *at_, *end_, *next_, *next_end_;
};

// The factors of a tile of C: element (i, k) of op(A) is a[i][k / lanes * a_block + k % lanes * a_step], and its
// imaginary part is `lanes` floats later.
struct TileFactors {
  const float* a[12];
  std::int64_t a_step, a_block;
  const float* b;
  const float* ahead;  // to prefetch
  std::int64_t b_row, k;
  bool add, past_caches;
};

template <bool negative, class Vector>
[[gnu::always_inline]] inline Vector multiply_add(float factor, Vector vector, Vector sum) {
  return negative ? sum - factor * vector : sum + factor * vector;
}

// Computes rows x (blocks * lanes) of C in registers.
template <int lanes, int rows, int blocks, bool conjugate_a, bool conjugate_b>
void multiply_tile(const TileFactors& factors, float* c, std::int64_t c_row) {
  Complex<lanes> sums[rows][blocks] = {};
  const float* a[rows];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) a[i] = factors.a[i];
  const float *b = factors.b, *ahead = factors.ahead;
  for (std::int64_t begin = 0; begin < factors.k; begin += lanes) {
    const std::int64_t count = factors.k - begin < lanes ? factors.k - begin : lanes;
    std::int64_t at = 0;
    for (std::int64_t k = 0; k < count; ++k, at += factors.a_step, b += factors.b_row, ahead += NextBin::fetched) {
      __builtin_prefetch(ahead);
      __builtin_prefetch(ahead + NextBin::line);
      Complex<lanes> right[blocks];
#pragma GCC unroll 16
      for (int block = 0; block < blocks; ++block) right[block] = load_complex<lanes>(b + block * 2 * lanes);
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        const float re = a[i][at], im = a[i][at + lanes];
#pragma GCC unroll 16
        for (int block = 0; block < blocks; ++block) {
          Complex<lanes>& sum = sums[i][block];
          sum.re += re * right[block].re;
          sum.im = multiply_add<conjugate_b>(re, right[block].im, sum.im);
          sum.re = multiply_add<conjugate_a == conjugate_b>(im, right[block].im, sum.re);
          sum.im = multiply_add<conjugate_a>(im, right[block].re, sum.im);
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) a[i] += factors.a_block;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 16
    for (int block = 0; block < blocks; ++block) {
      float* to = c + i * c_row + block * 2 * lanes;
      const Complex<lanes> sum = factors.add ? load_complex<lanes>(to) + sums[i][block] : sums[i][block];
      if (factors.past_caches)
        stream_complex<lanes>(to, sum);
      else
        store_complex<lanes>(to, sum);
    }
}

constexpr std::int64_t block_k = 128;

// Packs the part of op(B) that one round of the loops reads, two blocks of columns wide, into contiguous rows: `k` rows
// from b on, `step` floats apart.
template <int lanes>
void pack_rows(const float* b, std::int64_t step, std::int64_t k, std::int64_t blocks, float* packed) {
  for (std::int64_t row = 0; row < k; ++row, b += step)
    for (std::int64_t block = 0; block < blocks; ++block, packed += 2 * lanes)
      store_complex<lanes>(packed, load_complex<lanes>(b + block * 2 * lanes));
}

// The same from the transposed matrix: `columns` rows from b on.
template <int lanes>
void pack_columns(const float* b, std::int64_t step, std::int64_t k, std::int64_t columns, float* packed) {
  constexpr std::int64_t dense = 2 * lanes;
  const std::int64_t blocks = (columns + lanes - 1) / lanes;
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t row = 0; row < k; row += lanes)
      for (int part = 0; part < 2; ++part) {
        const float* from = b + block * lanes * step + row / lanes * dense + part * lanes;
        float* to = packed + (row * blocks + block) * dense + part * lanes;
        Floats<lanes> square[lanes];
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i)
          square[i] = block * lanes + i < columns ? load<lanes>(from + i * step) : Floats<lanes>{};
        transpose<lanes>(square);
#pragma GCC unroll 16
        for (int i = 0; i < lanes; ++i)
          if (row + i < k) store<lanes>(to + i * blocks * dense, square[i]);
      }
}

template <int lanes, int most_rows, bool conjugate_a, bool conjugate_b>
void multiply_rows(int blocks, int rows, const TileFactors& factors, float* c, std::int64_t c_row) {
  with_constant<most_rows>(rows, [&]<int tile_rows>() {
    if (blocks == 2)
      multiply_tile<lanes, tile_rows, 2, conjugate_a, conjugate_b>(factors, c, c_row);
    else
      multiply_tile<lanes, tile_rows, 1, conjugate_a, conjugate_b>(factors, c, c_row);
  });
}

// Multiplies one group of one bin. k is split into rounds of block_k: the packed part of B stays in the L1 cache, and
// sums stay short.
template <int lanes, int most_rows, bool conjugate_a, bool conjugate_b>
void multiply_bin(const BinProducts& p, const float* a, const float* b, float* c, NextBin& next) {
  constexpr std::int64_t dense = 2 * lanes;
  const std::int64_t a_row = p.of_a.row, b_row = p.of_b.row, c_row = p.of_c.row;
  const std::int64_t tiles = (p.m + most_rows - 1) / most_rows;
  TileFactors factors;
  factors.a_step = p.transpose_a ? a_row : 1;
  factors.a_block = p.transpose_a ? lanes * a_row : dense;
  factors.b = p.scratch;
  for (std::int64_t k = 0; k == 0 || k < p.k; k += block_k) {
    factors.k = p.k - k < block_k ? p.k - k : block_k;
    factors.add = p.accumulate || k > 0;
    factors.past_caches = p.past_caches && k + block_k >= p.k;
    for (std::int64_t column = 0; column < p.n; column += 2 * lanes) {
      const std::int64_t columns = p.n - column < 2 * lanes ? p.n - column : 2 * lanes;
      const int blocks = columns > lanes ? 2 : 1;
      factors.b_row = blocks * dense;
      if (p.transpose_b)
        pack_columns<lanes>(b + column * b_row + k / lanes * dense, b_row, factors.k, columns, p.scratch);
      else
        pack_rows<lanes>(b + k * b_row + column * 2, b_row, factors.k, blocks, p.scratch);
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t first = tile * p.m / tiles, rows = (tile + 1) * p.m / tiles - first;
        factors.ahead = next.take(factors.k, p.scratch);
        for (std::int64_t i = 0; i < rows; ++i) {
          const std::int64_t row = first + i;
          factors.a[i] =
              p.transpose_a ? a + k * a_row + row / lanes * dense + row % lanes : a + row * a_row + k / lanes * dense;
        }
        multiply_rows<lanes, most_rows, conjugate_a, conjugate_b>(blocks, static_cast<int>(rows), factors,
                                                                  c + first * c_row + column * 2, c_row);
      }
    }
  }
}

template <int lanes, int most_rows, bool conjugate_a, bool conjugate_b>
void multiply_bins(const BinProducts& p) {
  for (std::int64_t bin = 0; bin < p.bins; ++bin) {
    const float *a = p.a + bin * p.of_a.bin, *b = p.b + bin * p.of_b.bin;
    float* c = p.c + bin * p.of_c.bin;
    const bool last = bin + 1 == p.bins;
    NextBin next(a + p.of_a.bin, last ? 0 : p.of_a.bin, b + p.of_b.bin, last ? 0 : p.of_b.bin);
    for (std::int64_t group = 0; group < p.groups; ++group) {
      multiply_bin<lanes, most_rows, conjugate_a, conjugate_b>(p, a, b, c, next);
      a += p.of_a.group, b += p.of_b.group, c += p.of_c.group;
    }
  }
  if (p.past_caches) Special<lanes>::finish_streams();
}

template <int lanes>
std::int64_t product_scratch() {
  return block_k * 4 * lanes;
}

template <int lanes, int most_rows>
void multiply(const BinProducts& products) {
  const auto run = products.conjugate_a   ? products.conjugate_b ? multiply_bins<lanes, most_rows, true, true>
                                                                 : multiply_bins<lanes, most_rows, true, false>
                     : products.conjugate_b ? multiply_bins<lanes, most_rows, false, true>
                                          : multiply_bins<lanes, most_rows, false, false>;
  run(products);
}

}  // namespace
}  // namespace twiddle
