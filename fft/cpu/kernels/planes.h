#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/columns.h"
#include "fft/cpu/kernels/dft.h"
#include "fft/cpu/kernels/vector.h"

namespace twiddle {
namespace {

// Floats of scratch for a block: half-transformed planes, then a few lines. A row of `width` real numbers takes width /
// 2 complex ones: its first and last bin are real and share the first column. Columns (in the inverse: rows) are an odd
// number of vectors apart, so that they do not map to the same cache sets.
template <int lanes>
std::int64_t half_scratch(int height, int width) {
  const std::int64_t forward = std::int64_t(height | 1) * (width / 2), inverse = std::int64_t(width / 2 | 1) * height;
  return (forward > inverse ? forward : inverse) * 2 * lanes;
}

inline int longest_line(int height, int width) {
  return height > width / 2 ? height : width / 2;
}

template <int lanes>
std::int64_t plane_scratch(int height, int width) {
  return half_scratch<lanes>(height, width) + std::int64_t(4) * longest_line(height, width) * 2 * lanes;
}

// Returns `value` where the mask is above zero, else zeros; the mask has only the first `valid` lanes.
template <int lanes>
[[gnu::always_inline]] inline Floats<lanes> masked(const Floats<lanes>& value, const float* mask, int valid) {
  const Floats<lanes> passes = valid == lanes ? load<lanes>(mask) : Special<lanes>::load_first(mask, valid);
  return passes > 0 ? value : Floats<lanes>{};
}

// Copies row `row` of each plane of the window to a line of real numbers.
template <int lanes>
void gather_row(const BlockWindow& window, int row, float scale, int points, float* line) {
  const int begin = window.column_begin, end = window.column_end;
  for (int j = 0; j < begin; ++j) store<lanes>(line + j * lanes, Floats<lanes>{});
  for (int j = end; j < points; ++j) store<lanes>(line + j * lanes, Floats<lanes>{});
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
      for (int i = 0; i < lanes; ++i) store<lanes>(line + (j + i) * lanes, square[i] * scale);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i)
        if (i < valid) store<lanes>(line + (j + i) * lanes, square[i] * scale);
    }
  }
}

// The inverse: writes a line of real numbers to row `row` of each plane.
template <int lanes>
void scatter_row(const BlockWindow& window, int row, float scale, bool relu, const float* line) {
  float* first = window.target + std::int64_t(window.top + row) * window.pitch + window.left;
  const int added = row < window.rows_added ? window.column_end : window.columns_added;
  for (int j = window.column_begin; j < window.column_end; j += lanes) {
    const int valid = window.column_end - j < lanes ? window.column_end - j : lanes;
    Floats<lanes> square[lanes];
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i)
      square[i] = i < valid ? load<lanes>(line + (j + i) * lanes) * scale : Floats<lanes>{};
    transpose<lanes>(square);
    const int old = added - j < 0 ? 0 : added - j < valid ? added - j : valid;  // elements to add to come first
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

// Transforms a row of each plane as half as many complex numbers: elements 0 and 1 are the first one, 2 and 3 the next.
// The bins of the even and of the odd elements are separated by symmetry. They are written to row `row` of the columns
// of `half`.
template <int lanes>
void forward_row(const PlaneTransform& plane, int row, float* half, float* line, float* bins, float* spare) {
  constexpr std::int64_t dense = 2 * lanes;
  const int points = plane.rows.points;
  const std::int64_t column = (plane.columns.points | 1) * dense;
  gather_row<lanes>(plane.window, row, 0.5f * plane.scale, 2 * points, line);
  fft<lanes>(plane.rows, line, dense, bins, dense, spare);
  float* const to = half + row * dense;
  const Complex<lanes> sums = load_complex<lanes>(bins);
  store_complex<lanes>(to, Complex<lanes>{2 * (sums.re + sums.im), 2 * (sums.re - sums.im)});
  for (int j = 1; 2 * j <= points; ++j) {
    const Complex<lanes> a = load_complex<lanes>(bins + j * dense);
    const Complex<lanes> b = load_complex<lanes>(bins + (points - j) * dense);
    const Complex<lanes> even = {a.re + b.re, a.im - b.im}, odd = {a.im + b.im, b.re - a.re};
    const Complex<lanes> turned_odd = rotated<lanes>(odd, plane.row_roots[2 * j], plane.row_roots[2 * j + 1]);
    store_complex<lanes>(to + j * column, even + turned_odd);
    store_complex<lanes>(to + (points - j) * column, Complex<lanes>{even.re - turned_odd.re, turned_odd.im - even.im});
  }
}

// Writes the transformed shared column as the first and the middle column of bins.
template <int lanes, bool past_caches>
void put_shared_column(const PlaneTransform& plane, const float* shared) {
  const int height = plane.columns.points, width = 2 * plane.rows.points;
  float* first = plane.spectrum;
  float* middle = plane.spectrum + stored_column(height, width, width / 2).first * plane.bin_stride;
  for (int i = 0; i <= height / 2; ++i, first += plane.bin_stride, middle += plane.bin_stride) {
    const Complex<lanes> a = load_complex<lanes>(shared + i * 2 * lanes);
    const Complex<lanes> b = load_complex<lanes>(shared + (height - i) % height * 2 * lanes);
    put<lanes, past_caches>(first, Complex<lanes>{(a.re + b.re) * 0.5f, (a.im - b.im) * 0.5f});
    put<lanes, past_caches>(middle, Complex<lanes>{(a.im + b.im) * 0.5f, (b.re - a.re) * 0.5f});
  }
}

template <int lanes, bool past_caches>
void forward_planes(const PlaneTransform& plane) {
  constexpr std::int64_t dense = 2 * lanes;
  const int height = plane.columns.points, width = 2 * plane.rows.points, longest = longest_line(height, width);
  const std::int64_t column = (height | 1) * dense;
  float* half = plane.scratch;
  float* line = half + half_scratch<lanes>(height, width);
  float* bins = line + longest * dense;
  float* spare = bins + longest * dense;
  const int begin = plane.window.row_begin, end = plane.window.row_end;
  for (int i = begin; i < end; ++i) forward_row<lanes>(plane, i, half, line, bins, spare);
  for (int j = 0; j < width / 2; ++j)
    for (int i = 0; i < height; ++i)
      if (i < begin || i >= end) store_complex<lanes>(half + j * column + i * dense, Complex<lanes>{});
  fft<lanes>(plane.columns, half, dense, line, dense, spare);
  put_shared_column<lanes, past_caches>(plane, line);
  for (int j = 1; j < width / 2; ++j) {
    float* to = plane.spectrum + stored_column(height, width, j).first * plane.bin_stride;
    const float* from = half + j * column;
    if (!past_caches && height > 1) {
      fft<lanes>(plane.columns, from, dense, to, plane.bin_stride, spare);
      continue;
    }
    if (height > 1) fft<lanes>(plane.columns, from, dense, line, dense, spare), from = line;
    for (int i = 0; i < height; ++i, to += plane.bin_stride)
      put<lanes, past_caches>(to, load_complex<lanes>(from + i * dense));
  }
  if constexpr (past_caches) Special<lanes>::finish_streams();
}

// Combines the first and the middle column of bins, whose inverses are real, into one column.
template <int lanes>
void take_shared_column(const PlaneTransform& plane, float* shared) {
  const int height = plane.columns.points, width = 2 * plane.rows.points;
  const float* first = plane.spectrum;
  const float* middle = plane.spectrum + stored_column(height, width, width / 2).first * plane.bin_stride;
  for (int i = 0; i <= height / 2; ++i, first += plane.bin_stride, middle += plane.bin_stride) {
    const Complex<lanes> a = load_complex<lanes>(first);
    const Complex<lanes> b = load_complex<lanes>(middle);
    store_complex<lanes>(shared + i * 2 * lanes, Complex<lanes>{a.re - b.im, a.im + b.re});
    store_complex<lanes>(shared + (height - i) % height * 2 * lanes, Complex<lanes>{a.re + b.im, b.re - a.im});
  }
}

// Computes row `row` of each plane from `bins`: the bins of the even and odd elements, conjugated, so that a forward
// transform computes the inverse.
template <int lanes>
void inverse_row(const PlaneTransform& plane, int row, const float* bins, float* line, float* out, float* spare) {
  constexpr std::int64_t dense = 2 * lanes;
  const int points = plane.rows.points;
  const Complex<lanes> sums = load_complex<lanes>(bins);
  store_complex<lanes>(line, Complex<lanes>{sums.re + sums.im, sums.re - sums.im});
  for (int j = 1; 2 * j <= points; ++j) {
    const Complex<lanes> a = load_complex<lanes>(bins + j * dense);
    const Complex<lanes> b = load_complex<lanes>(bins + (points - j) * dense);
    const Complex<lanes> even = {a.re + b.re, a.im - b.im}, turned_odd = {a.re - b.re, a.im + b.im};
    const Complex<lanes> odd = rotated<lanes>(turned_odd, plane.row_roots[2 * j], -plane.row_roots[2 * j + 1]);
    store_complex<lanes>(line + j * dense, Complex<lanes>{even.re + odd.im, odd.re - even.im});
    store_complex<lanes>(line + (points - j) * dense, Complex<lanes>{even.re - odd.im, odd.re + even.im});
  }
  fft<lanes>(plane.rows, line, dense, out, dense, spare);
  scatter_row<lanes>(plane.window, row, plane.scale, plane.relu, out);
}

// The inverse of a column is its forward transform, read in reverse order.
template <int lanes>
void inverse_planes(const PlaneTransform& plane) {
  constexpr std::int64_t dense = 2 * lanes;
  const int height = plane.columns.points, width = 2 * plane.rows.points, longest = longest_line(height, width);
  const std::int64_t row = (width / 2 | 1) * dense;
  float* half = plane.scratch;
  float* line = half + half_scratch<lanes>(height, width);
  float* out = line + longest * dense;
  float* spare = out + longest * dense;
  const auto bins = [&](int j) { return plane.spectrum + stored_column(height, width, j).first * plane.bin_stride; };
  take_shared_column<lanes>(plane, line);
  fft<lanes>(plane.columns, line, dense, half, row, spare);
  for (int j = 1; j < width / 2; ++j) {
    if (j + 1 < width / 2)
      for (int i = 0; i < height; ++i) prefetch<lanes>(bins(j + 1) + i * plane.bin_stride);
    fft<lanes>(plane.columns, bins(j), plane.bin_stride, half + j * dense, row, spare);
  }
  for (int i = plane.window.row_begin; i < plane.window.row_end; ++i)
    inverse_row<lanes>(plane, i, half + (height - i) % height * row, line, out, spare);
}

}  // namespace
}  // namespace twiddle
