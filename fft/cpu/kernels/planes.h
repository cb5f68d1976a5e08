#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/columns.h"
#include "fft/cpu/kernels/dft.h"
#include "fft/cpu/kernels/vector.h"

namespace twiddle {
namespace {

// Columns of a half-transformed plane, rows in the inverse, are an odd number of vectors apart, away from each other in
// caches.
template <int lanes>
std::int64_t pair_scratch(int height, int width) {
  const std::int64_t longest = height > width ? height : width;
  return ((height | 1) * (width | 1) + 5 * longest) * 2 * lanes;
}

// `value` where the mask is above zero, else zeros; the mask has only the first `valid` lanes.
template <int lanes>
[[gnu::always_inline]] inline Floats<lanes> masked(const Floats<lanes>& value, const float* mask, int valid) {
  const Floats<lanes> passes = valid == lanes ? load<lanes>(mask) : Special<lanes>::load_first(mask, valid);
  return passes > 0 ? value : Floats<lanes>{};
}

// Row `row` of each plane of the window becomes the real (offset 0) or imaginary (offset lanes) parts of a line.
template <int lanes>
void gather_row(const BlockWindow& window, int row, float scale, int points, float* line) {
  const bool inside = row >= window.row_begin && row < window.row_end;
  const int begin = inside ? window.column_begin : points, end = inside ? window.column_end : points;
  for (int j = 0; j < begin; ++j) store<lanes>(line + j * 2 * lanes, Floats<lanes>{});
  for (int j = end; j < points; ++j) store<lanes>(line + j * 2 * lanes, Floats<lanes>{});
  if (!inside) return;
  const std::int64_t before = std::int64_t(window.top + row) * window.pitch + window.left;
  const float* first = window.source + before;
  for (int j = begin; j < end; j += lanes) {
    Floats<lanes> square[lanes];
    const int valid = end - j < lanes ? end - j : lanes;
    if (valid == lanes && window.planes == lanes) {
#pragma GCC unroll 16
      for (int plane = 0; plane < lanes; ++plane) {
        const float* from = first + j + plane * window.plane_stride;
        __builtin_prefetch(from + 2 * window.pitch);
        square[plane] = load<lanes>(from);
      }
    } else {
#pragma GCC unroll 16
      for (int plane = 0; plane < lanes; ++plane)
        square[plane] = plane < window.planes
                            ? Special<lanes>::load_first(first + j + plane * window.plane_stride, valid)
                            : Floats<lanes>{};
    }
    if (window.mask) {
      const float* mask = window.mask + before + j;
#pragma GCC unroll 16
      for (int plane = 0; plane < lanes; ++plane) {
        if (plane == window.planes) break;
        __builtin_prefetch(mask + plane * window.plane_stride + 2 * window.pitch);
        square[plane] = masked<lanes>(square[plane], mask + plane * window.plane_stride, valid);
      }
    }
    transpose<lanes>(square);
    if (valid == lanes) {
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) store<lanes>(line + (j + i) * 2 * lanes, square[i] * scale);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i)
        if (i < valid) store<lanes>(line + (j + i) * 2 * lanes, square[i] * scale);
    }
  }
}

// The other way: the real or imaginary parts of a line go to row `row` of each plane.
template <int lanes>
void scatter_row(const BlockWindow& window, int row, float scale, bool relu, const float* line) {
  if (row < window.row_begin || row >= window.row_end) return;
  float* first = window.target + std::int64_t(window.top + row) * window.pitch + window.left;
  const int added = row < window.rows_added ? window.column_end : window.columns_added;
  for (int j = window.column_begin; j < window.column_end; j += lanes) {
    const int valid = window.column_end - j < lanes ? window.column_end - j : lanes;
    Floats<lanes> square[lanes];
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i)
      square[i] = i < valid ? load<lanes>(line + (j + i) * 2 * lanes) * scale : Floats<lanes>{};
    transpose<lanes>(square);
    const int old = added - j < 0 ? 0 : added - j < valid ? added - j : valid;  // what is added to comes first
#pragma GCC unroll 16
    for (int plane = 0; plane < lanes; ++plane) {
      if (plane == window.planes) break;
      float* to = first + j + plane * window.plane_stride;
      __builtin_prefetch(to + 2 * window.pitch, 1);
      Floats<lanes> value = square[plane];
      if (window.bias) value += window.bias[plane];
      if (relu) value = value < 0 ? Floats<lanes>{} : value;  // NaN stays
      if (old > 0) value += Special<lanes>::load_first(to, old);
      if (valid == lanes)
        store<lanes>(to, value);
      else
        Special<lanes>::store_first(to, value, valid);
    }
  }
}

template <int lanes, bool past_caches>
[[gnu::always_inline]] inline void put(float* to, const Complex<lanes>& value) {
  if constexpr (past_caches)
    stream_complex<lanes>(to, value);
  else
    store_complex<lanes>(to, value);
}

template <int lanes, bool past_caches>
void forward_pair(const PairTransform& pair) {
  constexpr std::int64_t dense = 2 * lanes;
  const int height = pair.columns.points, width = pair.rows.points, longest = height > width ? height : width;
  const std::int64_t column = (height | 1) * dense;
  float* half = pair.scratch;
  float* one = half + column * width;
  float* other = one + longest * dense;
  float* spare = other + longest * dense;
  const BlockWindow &p = pair.window[0], &q = pair.window[1];
  const bool second = q.planes > 0;
  for (int i = 0; i < height; ++i) {
    const bool inside = (i >= p.row_begin && i < p.row_end) || (second && i >= q.row_begin && i < q.row_end);
    if (inside) {
      gather_row<lanes>(p, i, 0.5f * pair.scale, width, one);
      gather_row<lanes>(q, second ? i : -1, 0.5f * pair.scale, width, one + lanes);
      fft<lanes>(pair.rows, one, dense, half + i * dense, column, spare);
    } else {
      for (int j = 0; j < width; ++j) store_complex<lanes>(half + j * column + i * dense, Complex<lanes>{});
    }
  }
  for (int j = 0; j <= width / 2; ++j) {
    const int mirror = (width - j) % width;
    fft<lanes>(pair.columns, half + j * column, dense, one, dense, spare);
    if (mirror != j) fft<lanes>(pair.columns, half + mirror * column, dense, other, dense, spare);
    const float* conjugate = mirror != j ? other : one;
    const StoredColumn stored = stored_column(height, width, j);
    for (int i = 0; i < stored.bins; ++i) {
      const Complex<lanes> a = load_complex<lanes>(one + i * dense);
      const Complex<lanes> b = load_complex<lanes>(conjugate + (i == 0 ? 0 : height - i) * dense);
      const std::int64_t bin = (stored.first + i) * pair.bin_stride;
      put<lanes, past_caches>(pair.spectrum[0] + bin, Complex<lanes>{a.re + b.re, a.im - b.im});
      if (second) put<lanes, past_caches>(pair.spectrum[1] + bin, Complex<lanes>{a.im + b.im, b.re - a.re});
    }
  }
  if constexpr (past_caches) Special<lanes>::finish_streams();
}

// Real and imaginary parts change places on the way in and on the way out, which turns the transform around.
template <int lanes>
void inverse_pair(const PairTransform& pair) {
  constexpr std::int64_t dense = 2 * lanes;
  const int height = pair.columns.points, width = pair.rows.points, longest = height > width ? height : width;
  const std::int64_t row = (width | 1) * dense;
  float* half = pair.scratch;
  float* one = half + row * height;
  float* other = one + longest * dense;
  float* spare = other + longest * dense;
  float* line = spare + 2 * longest * dense;
  const BlockWindow &p = pair.window[0], &q = pair.window[1];
  const bool second = q.planes > 0;
  const std::int64_t bins = stored_bins(height, width);
  for (int j = 0; j <= width / 2; ++j) {
    const int mirror = (width - j) % width;
    float* conjugate = mirror != j ? other : one;
    const StoredColumn stored = stored_column(height, width, j);
    for (int i = 0; i < stored.bins; ++i) {
      const std::int64_t bin = (stored.first + i) * pair.bin_stride;
      if (stored.first + i + height < bins) {  // the next column
        bring_near<lanes>(pair.spectrum[0] + bin + height * pair.bin_stride);
        if (second) bring_near<lanes>(pair.spectrum[1] + bin + height * pair.bin_stride);
      }
      const Complex<lanes> a = load_complex<lanes>(pair.spectrum[0] + bin);
      const Complex<lanes> b = second ? load_complex<lanes>(pair.spectrum[1] + bin) : Complex<lanes>{};
      store_complex<lanes>(one + i * dense, Complex<lanes>{a.im + b.re, a.re - b.im});
      store_complex<lanes>(conjugate + (i == 0 ? 0 : height - i) * dense, Complex<lanes>{b.re - a.im, a.re + b.im});
    }
    fft<lanes>(pair.columns, one, dense, half + j * dense, row, spare);
    if (mirror != j) fft<lanes>(pair.columns, other, dense, half + mirror * dense, row, spare);
  }
  for (int i = 0; i < height; ++i) {
    const bool inside = (i >= p.row_begin && i < p.row_end) || (second && i >= q.row_begin && i < q.row_end);
    if (!inside) continue;
    fft<lanes>(pair.rows, half + i * row, dense, line, dense, spare);
    scatter_row<lanes>(p, i, pair.scale, pair.relu, line + lanes);
    if (second) scatter_row<lanes>(q, i, pair.scale, pair.relu, line);
  }
}

}  // namespace
}  // namespace twiddle
