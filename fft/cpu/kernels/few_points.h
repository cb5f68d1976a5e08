#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/columns.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/vector.h"
#include "fft/cpu/kernels/with_constant.h"

// Transforms between planes of a few points (weights) and many bins, as direct sums with a cosine and a sine each. Bins
// +f and -f have the same products, so that only half of them are computed.
namespace twiddle {
namespace {

template <int lanes>
std::int64_t few_scratch(const FewPoints& few) {
  return (few.rows * few.columns + few.rows * (few.width / 2 + 1) * 2) * lanes;
}

// Calls `run` for `count` rows in chunks of at most six, with the number of rows of each as a compile-time constant.
template <class Run>
[[gnu::always_inline]] inline void in_chunks(int count, const Run& run) {
  const int chunks = (count + 5) / 6;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int first = chunk * count / chunks;
    with_constant<6>((chunk + 1) * count / chunks - first, [&]<int rows>() { run.template operator()<rows>(first); });
  }
}

// Transforms rows [first, first + count) of the plane to one bin each; `roots` are that bin's cosines and sines.
template <int lanes, int count>
void row_bins(const float* plane, int columns, const float* roots, float* out) {
  Complex<lanes> sums[count] = {};
  for (int j = 0; j < columns; ++j)
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      const Floats<lanes> value = load<lanes>(plane + (i * columns + j) * lanes);
      sums[i].re += value * roots[2 * j];
      sums[i].im -= value * roots[2 * j + 1];
    }
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i) store_complex<lanes>(out + i * 2 * lanes, sums[i]);
}

// Computes bins [first, first + count) of a column, and the bins of opposite sign if they are stored.
template <int lanes, int count, bool past_caches>
void column_bins(const float* in, const FewPoints& few, int first, int stored, float* spectrum) {
  const std::int64_t bin_stride = few.bin_stride;
  Complex<lanes> even[count] = {}, odd[count] = {};
  const float* roots = few.column_roots + 2 * first * few.rows;
  for (int i = 0; i < few.rows; ++i) {
    const Complex<lanes> value = load_complex<lanes>(in + i * 2 * lanes);
#pragma GCC unroll 16
    for (int k = 0; k < count; ++k) {
      const float cosine = roots[2 * (k * few.rows + i)], sine = roots[2 * (k * few.rows + i) + 1];
      even[k].re += value.re * cosine;
      even[k].im += value.im * cosine;
      odd[k].re += value.re * sine;
      odd[k].im += value.im * sine;
    }
  }
#pragma GCC unroll 16
  for (int k = 0; k < count; ++k) {
    const int bin = first + k, mirror = few.height - bin;
    put<lanes, past_caches>(spectrum + bin * bin_stride,
                            Complex<lanes>{even[k].re + odd[k].im, even[k].im - odd[k].re});
    if (bin > 0 && mirror > bin && mirror < stored)
      put<lanes, past_caches>(spectrum + mirror * bin_stride,
                              Complex<lanes>{even[k].re - odd[k].im, even[k].im + odd[k].re});
  }
}

template <int lanes, bool past_caches>
void forward_few(const FewPoints& few) {
  constexpr std::int64_t dense = 2 * lanes;
  float* plane = few.scratch;
  float* column = plane + few.rows * few.columns * lanes;
  gather_row<lanes>(few.window, 0, few.scale, few.rows * few.columns, plane);
  for (int j = 0; j <= few.width / 2; ++j) {
    in_chunks(few.rows, [&]<int count>(int first) {
      row_bins<lanes, count>(plane + first * few.columns * lanes, few.columns, few.row_roots + 2 * j * few.columns,
                             column + first * dense);
    });
    const StoredColumn stored = stored_column(few.height, few.width, j);
    float* bins = few.spectrum + stored.first * few.bin_stride;
    const int half = few.height / 2 + 1;
    int bin = 0;
    for (; bin + 4 <= half; bin += 4) column_bins<lanes, 4, past_caches>(column, few, bin, stored.bins, bins);
    for (; bin < half; ++bin) column_bins<lanes, 1, past_caches>(column, few, bin, stored.bins, bins);
  }
  if constexpr (past_caches) Special<lanes>::finish_streams();
}

// Computes rows [first, first + count) from a column of bins, of which `stored` are stored.
template <int lanes, int count>
void rows_of_column(const float* spectrum, const FewPoints& few, int first, int stored, float* out) {
  const Complex<lanes> zeroth = load_complex<lanes>(spectrum);
  Complex<lanes> sums[count];
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i) sums[i] = zeroth;
  const float* roots = few.column_roots + 2 * first;
  const int half = (few.height - 1) / 2;
  for (int bin = 1; bin <= half; ++bin) {
    roots += 2 * few.rows;
    const Complex<lanes> up = load_complex<lanes>(spectrum + bin * few.bin_stride);
    const int mirror = few.height - bin;
    const Complex<lanes> down =
        mirror < stored ? load_complex<lanes>(spectrum + mirror * few.bin_stride) : Complex<lanes>{up.re, -up.im};
    const Complex<lanes> sum = up + down, difference = up - down;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      const float cosine = roots[2 * i], sine = roots[2 * i + 1];
      sums[i].re += sum.re * cosine;
      sums[i].im += sum.im * cosine;
      sums[i].re -= difference.im * sine;
      sums[i].im += difference.re * sine;
    }
  }
  if (few.height % 2 == 0) {
    roots += 2 * few.rows;
    const Complex<lanes> middle = load_complex<lanes>(spectrum + few.height / 2 * few.bin_stride);
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      sums[i].re += middle.re * roots[2 * i];
      sums[i].im += middle.im * roots[2 * i];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i) store_complex<lanes>(out + i * 2 * lanes, sums[i]);
}

// Computes element `j` of rows [first, first + count) from the bins of the rows: `in` is [bin][row].
template <int lanes, int count>
void elements_of_rows(const float* in, const FewPoints& few, int first, int j, float* out) {
  Floats<lanes> sums[count] = {};
  const int half = (few.width - 1) / 2;
  const float* roots = few.row_roots + 2 * j;
  in += first * 2 * lanes;
  const std::int64_t step = few.rows * 2 * lanes;
  for (int bin = 1; bin <= half; ++bin) {
    const float cosine = roots[2 * bin * few.columns], sine = roots[2 * bin * few.columns + 1];
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      const Complex<lanes> value = load_complex<lanes>(in + bin * step + i * 2 * lanes);
      sums[i] += value.re * cosine;
      sums[i] -= value.im * sine;
    }
  }
  // Each bin also represents its conjugate, except for the first and the middle one.
  const bool middle = few.width % 2 == 0;
  const float sign = middle ? roots[few.width * few.columns] : 0;
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i) {
    Floats<lanes> sum = load<lanes>(in + i * 2 * lanes) + 2 * sums[i];
    if (middle) sum += sign * load<lanes>(in + few.width / 2 * step + i * 2 * lanes);
    store<lanes>(out + (i * few.columns + j) * lanes, sum);
  }
}

template <int lanes>
void inverse_few(const FewPoints& few) {
  constexpr std::int64_t dense = 2 * lanes;
  float* plane = few.scratch;
  float* half = plane + few.rows * few.columns * lanes;
  for (int j = 0; j <= few.width / 2; ++j) {
    const StoredColumn stored = stored_column(few.height, few.width, j);
    const float* bins = few.spectrum + stored.first * few.bin_stride;
    if (j < few.width / 2) {
      const StoredColumn next = stored_column(few.height, few.width, j + 1);
      for (int i = 0; i < next.bins; ++i) prefetch<lanes>(few.spectrum + (next.first + i) * few.bin_stride);
    }
    in_chunks(few.rows, [&]<int count>(int first) {
      rows_of_column<lanes, count>(bins, few, first, stored.bins, half + (j * few.rows + first) * dense);
    });
  }
  for (int j = 0; j < few.columns; ++j)
    in_chunks(few.rows, [&]<int count>(int first) {
      elements_of_rows<lanes, count>(half, few, first, j, plane + first * few.columns * lanes);
    });
  scatter_row<lanes>(few.window, 0, few.scale, few.relu, plane);
}

}  // namespace
}  // namespace twiddle
