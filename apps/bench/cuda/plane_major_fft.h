#pragma once
#include "apps/bench/cuda/block_steps.h"
#include "fft/cuda/planes/plane_fft.h"

// Real transforms of small planes to [plane][row][bins 0 .. W/2 of the row], as in rfft2 and cuFFT. Differs from
// planes/plane_fft.h in one point: a block's spectra are one contiguous memory range. They go through shared memory, so
// that global accesses are coalesced.
namespace twiddle::small_fft {

template <int H, int W, int P>
struct PlaneMajor : BlockThread {
  using BlockThread::BlockThread;
  using Size = PlaneSize<H, W>;
  static constexpr int half_row = Size::half_row, bins = H * half_row, pitch = Size::pitch, points = H * W / 2;
  // A GPU writes memory in 32-byte sectors: rows that are not aligned to them are gathered in shared memory first.
  static constexpr bool whole_sectors = W % 8 == 0;
  static constexpr int threads = P * (H > W ? H : W) / 2, count = P;
  static constexpr int forward_steps = 4, inverse_steps = whole_sectors ? 4 : 6;
  // Stride between planes in shared memory. It is padded so that the 16 threads of half a warp, which access adjacent
  // planes and then adjacent rows, use 16 different pairs of banks.
  static constexpr int bin_pitch = bins + ((P >= 16 ? 1 : 16 / P) + 16 - bins % 16) % 16;
  static_assert(P * bins % 2 == 0);
  struct alignas(16) Shared {
    union {
      Complex numbers[P * pitch];
      Complex spectra[P * bin_pitch];
      Complex gathered[P * points];
    };
  };
  Complex row[W], column[H];  // used one after the other

  // Each thread transforms two columns of a plane, as the real and the imaginary part of one (planes/plane_fft.h).
  TWIDDLE_HD void forward(Index<0>, const BatchForward& a, Shared& shared) {
    const Share at = columns_of(a.count);
    if (!at.there) return;
    const Complex* const source = a.source + (block * P + at.plane) * points + at.index;
    unrolled<H>([&](auto i) { column[i] = source[i * (W / 2)]; });
    columns_to_rows<H, W>(column, shared.numbers + at.plane * pitch, at.index);
  }

  // Each thread transforms a row and keeps it in registers: `numbers` is still being read, and `spectra` shares its
  // memory.
  TWIDDLE_HD void forward(Index<1>, const BatchForward& a, Shared& shared) {
    const Share at = row_of(a.count);
    if (!at.there) return;
    load_numbers(row, shared.numbers + at.plane * pitch + at.index * W);
    transform<forwards>(row);
  }

  // Stores all bins of the row, and of its conjugate.
  TWIDDLE_HD void forward(Index<2>, const BatchForward& a, Shared& shared) {
    if (const Share at = row_of(a.count); at.there) store_row(shared.spectra + at.plane * bin_pitch, at.index);
  }

  // Stores the spectra, which are one contiguous range of global memory.
  TWIDDLE_HD void forward(Index<3>, const BatchForward& a, Shared& shared) {
    store_contiguous<bins, bin_pitch, threads>(shared.spectra, a.spectrum + block * P * bins,
                                               count_in_block<P>(a.count, block) * bins, thread);
  }

  // Loads the spectra to shared memory.
  TWIDDLE_HD void inverse(Index<0>, const BatchInverse& a, Shared& shared) {
    load_contiguous<bins, bin_pitch, P * bins, threads>(shared.spectra, a.spectrum + block * P * bins,
                                                        count_in_block<P>(a.count, block) * bins, thread);
  }

  // Transforms one row per thread, in registers as in forward().
  TWIDDLE_HD void inverse(Index<1>, const BatchInverse& a, Shared& shared) {
    const Share at = row_of(a.count);
    if (!at.there) return;
    load_row(shared.spectra + at.plane * bin_pitch, at.index);
    transform<backwards>(row);
  }

  // Writes the rows to shared memory, from which columns are read.
  TWIDDLE_HD void inverse(Index<2>, const BatchInverse& a, Shared& shared) {
    if (const Share at = row_of(a.count); at.there)
      store_numbers(row, shared.numbers + at.plane * pitch + at.index * W);
  }

  // Transforms two columns of a plane. Writes directly to global memory if that writes whole sectors.
  TWIDDLE_HD void inverse(Index<3>, const BatchInverse& a, Shared& shared) {
    const Share at = columns_of(a.count);
    if (!at.there) return;
    load_columns(shared.numbers + at.plane * pitch, at.index);
    if constexpr (whole_sectors) store_columns(target(a) + at.plane * points + at.index);
  }

  // Otherwise writes through shared memory ...
  TWIDDLE_HD void inverse(Index<4>, const BatchInverse& a, Shared& shared) {
    if (const Share at = columns_of(a.count); at.there) store_columns(shared.gathered + at.plane * points + at.index);
  }

  // ... as one contiguous range.
  TWIDDLE_HD void inverse(Index<5>, const BatchInverse& a, Shared& shared) {
    store_contiguous<1, 1, threads>(shared.gathered, target(a), count_in_block<P>(a.count, block) * points, thread);
  }

 protected:
  struct Share {
    int plane, index;  // index: of a pair of columns, or of a row
    bool there;
  };
  TWIDDLE_HD Share columns_of(std::int64_t planes) const {
    const int plane = thread / Size::pairs;
    return {plane, thread % Size::pairs, plane < count_in_block<P>(planes, block)};
  }
  TWIDDLE_HD Share row_of(std::int64_t planes) const {
    const int plane = thread % P, index = thread / P;
    return {plane, index, index < Size::rows && plane < count_in_block<P>(planes, block)};
  }

  TWIDDLE_HD Complex* target(const BatchInverse& a) const { return a.target + block * P * points; }
  // Stores a row, and row H - index, which is its conjugate in reverse order.
  TWIDDLE_HD void store_row(Complex* spectrum, int index) const {
    if (index == 0) return store_real_rows(spectrum, spectrum + H / 2 * half_row);
    Complex *const to = spectrum + index * half_row, *const other = spectrum + (H - index) * half_row;
    unrolled<half_row>([&](auto i) {
      constexpr int bin = decltype(i)::value;
      to[bin] = row[bin], other[bin] = conj(row[(W - bin) % W]);
    });
  }
  TWIDDLE_HD void load_row(const Complex* spectrum, int index) {
    if (index == 0) return load_real_rows(spectrum, spectrum + H / 2 * half_row);
    const Complex *const from = spectrum + index * half_row, *const other = spectrum + (H - index) * half_row;
    unrolled<half_row>([&](auto bin) { row[bin] = from[bin]; });
    unrolled<W / 2 - 1>([&](auto before) {
      constexpr int bin = decltype(before)::value + 1;
      row[W - bin] = conj(other[bin]);
    });
  }
  TWIDDLE_HD void load_columns(const Complex* plane, int pair) {
    columns_from_rows<H, W>(column, plane, pair);
    unrolled<H>([&](auto i) { column[i] = scaled(column[i], 1.f / (H * W)); });
  }
  TWIDDLE_HD void store_columns(Complex* to) const {
    unrolled<H>([&](auto i) { to[i * (W / 2)] = column[i]; });
  }

 private:
  // Rows 0 and H/2, transformed as the real and the imaginary part of one.
  TWIDDLE_HD void store_real_rows(Complex* first, Complex* second) const {
    first[0] = {row[0].re, 0}, second[0] = {row[0].im, 0};
    unrolled<W / 2>([&](auto before) {
      constexpr int bin = decltype(before)::value + 1;
      const Complex a = row[bin], b = row[W - bin];
      first[bin] = {0.5f * (a.re + b.re), 0.5f * (a.im - b.im)};
      second[bin] = {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)};
    });
  }
  TWIDDLE_HD void load_real_rows(const Complex* first, const Complex* second) {
    row[0] = {first[0].re, second[0].re}, row[W / 2] = {first[W / 2].re, second[W / 2].re};
    unrolled<W / 2 - 1>([&](auto before) {
      constexpr int bin = decltype(before)::value + 1;
      const Complex a = first[bin], b = second[bin];
      row[bin] = {a.re - b.im, a.im + b.re}, row[W - bin] = {a.re + b.im, b.re - a.im};
    });
  }
};

// The same for few planes, where latency counts: accesses bins in global memory directly, with one barrier.
template <int H, int W, int P>
struct DirectPlaneMajor : PlaneMajor<H, W, P> {
  using Base = PlaneMajor<H, W, P>;
  using Base::Base, Base::block, Base::bins, Base::pitch, Base::points, Base::row;
  using typename Base::Shared, typename Base::Share;
  static constexpr int forward_steps = 2, inverse_steps = 2;

  TWIDDLE_HD void forward(Index<0> first, const BatchForward& a, Shared& shared) { Base::forward(first, a, shared); }
  TWIDDLE_HD void forward(Index<1> second, const BatchForward& a, Shared& shared) {
    Base::forward(second, a, shared);
    const Share at = this->row_of(a.count);
    if (at.there) this->store_row(a.spectrum + (block * P + at.plane) * bins, at.index);
  }

  TWIDDLE_HD void inverse(Index<0>, const BatchInverse& a, Shared& shared) {
    const Share at = this->row_of(a.count);
    if (!at.there) return;
    this->load_row(a.spectrum + (block * P + at.plane) * bins, at.index);
    transform<backwards>(row);
    store_numbers(row, shared.numbers + at.plane * pitch + at.index * W);
  }
  TWIDDLE_HD void inverse(Index<1>, const BatchInverse& a, Shared& shared) {
    const Share at = this->columns_of(a.count);
    if (!at.there) return;
    this->load_columns(shared.numbers + at.plane * pitch, at.index);
    this->store_columns(this->target(a) + at.plane * points + at.index);
  }
};

}  // namespace twiddle::small_fft
