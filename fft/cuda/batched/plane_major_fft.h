#pragma once
#include "fft/cuda/batched/block_steps.h"
#include "fft/cuda/planes/plane_fft.h"

// Real transforms of small planes to [plane][row][bins 0 .. W/2 of the row], as rfft2 and cuFFT give them. The same as
// planes/plane_fft.h, but that a block's spectra are one contiguous range of memory: it goes through shared memory, so
// that the accesses are coalesced.
namespace twiddle::small_fft {

template <int H, int W, int P>
struct PlaneMajorBlock : PlaneSize<H, W> {
  using Size = PlaneSize<H, W>;
  static constexpr int threads = P * (H > W ? H : W) / 2, count = P;
  static constexpr int half_row = W / 2 + 1, bins = H * half_row;
  // From plane to plane in shared memory: padded so that the 16 threads of half a warp, which have adjacent planes and
  // then adjacent rows, meet 16 different pairs of banks.
  static constexpr int bin_pitch = bins + ((P >= 16 ? 1 : 16 / P) + 16 - bins % 16) % 16;
  struct alignas(16) Shared {
    union {
      Complex numbers[P * Size::pitch];
      Complex spectra[P * bin_pitch];
      Complex gathered[P * H * W / 2];
    };
  };
  struct Registers {
    Complex row[W], column[H];  // the one, then the other
  };
  static_assert(P * bins % 2 == 0);

  struct Share {
    int plane, index;  // index: of a pair of columns, or of a row
    bool there;
  };
  TWIDDLE_HD static Share columns_of(std::int64_t planes, std::int64_t block, int thread) {
    const int plane = thread / Size::pairs;
    return {plane, thread % Size::pairs, plane < count_in_block<P>(planes, block)};
  }
  TWIDDLE_HD static Share row_of(std::int64_t planes, std::int64_t block, int thread) {
    const int plane = thread % P, row = thread / P;
    return {plane, row, row < Size::rows && plane < count_in_block<P>(planes, block)};
  }
};

template <int H, int W, int P>
struct PlaneMajorForward : PlaneMajorBlock<H, W, P> {
  using Base = PlaneMajorBlock<H, W, P>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchForward;
  static constexpr int steps = 4;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::columns_of(a.count, block, thread);
    if (!at.there) return;
    const auto* const source =
        reinterpret_cast<const Complex*>(a.source) + (block * P + at.plane) * (H * W / 2) + at.index;
    unrolled<H>([&](auto row) { r.column[row] = source[row * (W / 2)]; });
    columns_to_rows<H, W>(r.column, shared.numbers + at.plane * Base::pitch, at.index);
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::row_of(a.count, block, thread);
    if (!at.there) return;
    load_numbers(r.row, shared.numbers + at.plane * Base::pitch + at.index * W);
    transform<forwards>(r.row);
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::row_of(a.count, block, thread);
    if (at.there) place_row(r.row, shared.spectra + at.plane * Base::bin_pitch, at.index);
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    store_contiguous<Base::bins, Base::bin_pitch, Base::threads>(
        shared.spectra, a.spectrum + block * P * Base::bins, count_in_block<P>(a.count, block) * Base::bins, thread);
  }

 protected:
  // Stores a row, and row H - index, which is its conjugate in reverse order.
  TWIDDLE_HD static void place_row(const Complex (&v)[W], Complex* spectrum, int index) {
    if (index == 0) return place_real_rows(v, spectrum, spectrum + H / 2 * Base::half_row);
    Complex *const row = spectrum + index * Base::half_row, *const other = spectrum + (H - index) * Base::half_row;
    unrolled<Base::half_row>([&](auto i) {
      constexpr int bin = decltype(i)::value;
      row[bin] = v[bin], other[bin] = conj(v[(W - bin) % W]);
    });
  }

 private:
  // Rows 0 and H/2, which were transformed as the real and the imaginary part of one.
  TWIDDLE_HD static void place_real_rows(const Complex (&v)[W], Complex* first, Complex* second) {
    first[0] = {v[0].re, 0}, second[0] = {v[0].im, 0};
    unrolled<W / 2>([&](auto before) {
      constexpr int bin = decltype(before)::value + 1;
      const Complex a = v[bin], b = v[W - bin];
      first[bin] = {0.5f * (a.re + b.re), 0.5f * (a.im - b.im)};
      second[bin] = {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)};
    });
  }
};

template <int H, int W, int P>
struct PlaneMajorInverse : PlaneMajorBlock<H, W, P> {
  using Base = PlaneMajorBlock<H, W, P>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchInverse;
  // A GPU writes memory by sectors of 32 bytes: rows that are not aligned to them are gathered in shared memory first.
  static constexpr bool whole_sectors = W % 8 == 0;
  static constexpr int steps = whole_sectors ? 4 : 6;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    load_contiguous<Base::bins, Base::bin_pitch, P * Base::bins, Base::threads>(
        shared.spectra, a.spectrum + block * P * Base::bins, count_in_block<P>(a.count, block) * Base::bins, thread);
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::row_of(a.count, block, thread);
    if (!at.there) return;
    take_row(r.row, shared.spectra + at.plane * Base::bin_pitch, at.index);
    transform<backwards>(r.row);
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::row_of(a.count, block, thread);
    if (at.there) store_numbers(r.row, shared.numbers + at.plane * Base::pitch + at.index * W);
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::columns_of(a.count, block, thread);
    if (!at.there) return;
    take_columns(r.column, shared.numbers + at.plane * Base::pitch, at.index);
    if constexpr (whole_sectors) store_columns(r.column, target(a, block) + at.plane * (H * W / 2) + at.index);
  }

  TWIDDLE_HD static void step(Index<4>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::columns_of(a.count, block, thread);
    if (at.there) store_columns(r.column, shared.gathered + at.plane * (H * W / 2) + at.index);
  }

  TWIDDLE_HD static void step(Index<5>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    store_contiguous<1, 1, Base::threads>(shared.gathered, target(a, block),
                                          count_in_block<P>(a.count, block) * (H * W / 2), thread);
  }

 protected:
  TWIDDLE_HD static void take_row(Complex (&v)[W], const Complex* spectrum, int index) {
    if (index == 0) return take_real_rows(v, spectrum, spectrum + H / 2 * Base::half_row);
    const Complex *const row = spectrum + index * Base::half_row, *const other =
                                                                      spectrum + (H - index) * Base::half_row;
    unrolled<Base::half_row>([&](auto bin) { v[bin] = row[bin]; });
    unrolled<W / 2 - 1>([&](auto before) {
      constexpr int bin = decltype(before)::value + 1;
      v[W - bin] = conj(other[bin]);
    });
  }
  TWIDDLE_HD static void take_columns(Complex (&v)[H], const Complex* plane, int pair) {
    columns_from_rows<H, W>(v, plane, pair);
    unrolled<H>([&](auto row) { v[row] = scaled(v[row], 1.f / (H * W)); });
  }
  TWIDDLE_HD static Complex* target(const Arguments& a, std::int64_t block) {
    return reinterpret_cast<Complex*>(a.target) + block * P * (H * W / 2);
  }
  TWIDDLE_HD static void store_columns(const Complex (&v)[H], Complex* to) {
    unrolled<H>([&](auto row) { to[row * (W / 2)] = v[row]; });
  }

 private:
  TWIDDLE_HD static void take_real_rows(Complex (&v)[W], const Complex* first, const Complex* second) {
    v[0] = {first[0].re, second[0].re}, v[W / 2] = {first[W / 2].re, second[W / 2].re};
    unrolled<W / 2 - 1>([&](auto before) {
      constexpr int bin = decltype(before)::value + 1;
      const Complex a = first[bin], b = second[bin];
      v[bin] = {a.re - b.im, a.im + b.re}, v[W - bin] = {a.re + b.im, b.re - a.im};
    });
  }
};

// The same for few planes, where latency counts: bins go straight from and to global memory, and there is one barrier.
template <int H, int W, int P>
struct DirectPlaneMajorForward : PlaneMajorForward<H, W, P> {
  using Base = PlaneMajorForward<H, W, P>;
  using typename Base::Arguments, typename Base::Shared, typename Base::Registers;
  static constexpr int steps = 2;

  TWIDDLE_HD static void step(Index<0> first, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    Base::step(first, a, block, thread, shared, r);
  }
  TWIDDLE_HD static void step(Index<1> second, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    Base::step(second, a, block, thread, shared, r);
    const auto at = Base::row_of(a.count, block, thread);
    if (at.there) Base::place_row(r.row, a.spectrum + (block * P + at.plane) * Base::bins, at.index);
  }
};

template <int H, int W, int P>
struct DirectPlaneMajorInverse : PlaneMajorInverse<H, W, P> {
  using Base = PlaneMajorInverse<H, W, P>;
  using typename Base::Arguments, typename Base::Shared, typename Base::Registers;
  static constexpr int steps = 2;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::row_of(a.count, block, thread);
    if (!at.there) return;
    Base::take_row(r.row, a.spectrum + (block * P + at.plane) * Base::bins, at.index);
    transform<backwards>(r.row);
    store_numbers(r.row, shared.numbers + at.plane * Base::pitch + at.index * W);
  }
  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::columns_of(a.count, block, thread);
    if (!at.there) return;
    Base::take_columns(r.column, shared.numbers + at.plane * Base::pitch, at.index);
    Base::store_columns(r.column, Base::target(a, block) + at.plane * (H * W / 2) + at.index);
  }
};

}  // namespace twiddle::small_fft
