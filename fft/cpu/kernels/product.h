#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/vector.h"

namespace twiddle {
namespace {

// Where a tile of C finds its factors: element (i, k) of op(A) is a[i][k / lanes * a_block + k % lanes * a_step], its
// imaginary part `lanes` behind.
struct TileFactors {
  const float* a[12];
  std::int64_t a_step, a_block;
  const float* b;
  std::int64_t b_row, k;
  bool add;
};

template <bool negative, class Vector>
[[gnu::always_inline]] inline Vector multiply_add(float factor, Vector vector, Vector sum) {
  return negative ? sum - factor * vector : sum + factor * vector;
}

// rows x (blocks * lanes) of C, all in registers.
template <int lanes, int rows, int blocks, bool conjugate_a, bool conjugate_b>
void multiply_tile(const TileFactors& factors, float* c, std::int64_t c_row) {
  Complex<lanes> sums[rows][blocks] = {};
  const float* a[rows];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) a[i] = factors.a[i];
  const float* b = factors.b;
  for (std::int64_t begin = 0; begin < factors.k; begin += lanes) {
    const std::int64_t count = factors.k - begin < lanes ? factors.k - begin : lanes;
    std::int64_t at = 0;
    for (std::int64_t k = 0; k < count; ++k, at += factors.a_step, b += factors.b_row) {
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
      store_complex<lanes>(to, factors.add ? load_complex<lanes>(to) + sums[i][block] : sums[i][block]);
    }
}

template <int lanes, int blocks, bool conjugate_a, bool conjugate_b>
void multiply_rows(int rows, const TileFactors& factors, float* c, std::int64_t c_row) {
  switch (rows) {
    case 1:
      return multiply_tile<lanes, 1, blocks, conjugate_a, conjugate_b>(factors, c, c_row);
    case 2:
      return multiply_tile<lanes, 2, blocks, conjugate_a, conjugate_b>(factors, c, c_row);
    case 3:
      return multiply_tile<lanes, 3, blocks, conjugate_a, conjugate_b>(factors, c, c_row);
    case 4:
      return multiply_tile<lanes, 4, blocks, conjugate_a, conjugate_b>(factors, c, c_row);
    case 5:
      return multiply_tile<lanes, 5, blocks, conjugate_a, conjugate_b>(factors, c, c_row);
    default:
      return multiply_tile<lanes, 6, blocks, conjugate_a, conjugate_b>(factors, c, c_row);
  }
}

// k is cut, so that B's share of a round stays in the nearest cache, and sums stay short.
template <int lanes, int most_rows, bool conjugate_a, bool conjugate_b>
void multiply_bins(const BinProducts& p) {
  constexpr std::int64_t dense = 2 * lanes, block_k = 128;
  const auto width = [](std::int64_t columns) { return (columns + lanes - 1) / lanes * dense; };
  const std::int64_t a_row = width(p.transpose_a ? p.m : p.k), b_row = width(p.n), blocks = b_row / dense;
  const std::int64_t tiles = (p.m + most_rows - 1) / most_rows;
  for (std::int64_t bin = 0; bin < p.bins; ++bin) {
    const float* a = p.a + bin * p.a_bin;
    for (std::int64_t k = 0; k == 0 || k < p.k; k += block_k)
      for (std::int64_t block = 0; block < blocks; block += 2)
        for (std::int64_t tile = 0; tile < tiles; ++tile) {
          const std::int64_t first = tile * p.m / tiles, rows = (tile + 1) * p.m / tiles - first;
          TileFactors factors;
          factors.k = p.k - k < block_k ? p.k - k : block_k;
          factors.add = p.accumulate || k > 0;
          factors.b = p.b + bin * p.b_bin + k * b_row + block * dense;
          factors.b_row = b_row;
          factors.a_step = p.transpose_a ? a_row : 1;
          factors.a_block = p.transpose_a ? lanes * a_row : dense;
          for (std::int64_t i = 0; i < rows; ++i) {
            const std::int64_t row = first + i;
            factors.a[i] =
                p.transpose_a ? a + k * a_row + row / lanes * dense + row % lanes : a + row * a_row + k / lanes * dense;
          }
          float* c = p.c + bin * p.c_bin + first * b_row + block * dense;
          if (block + 1 < blocks)
            multiply_rows<lanes, 2, conjugate_a, conjugate_b>(static_cast<int>(rows), factors, c, b_row);
          else
            multiply_rows<lanes, 1, conjugate_a, conjugate_b>(static_cast<int>(rows), factors, c, b_row);
        }
  }
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
