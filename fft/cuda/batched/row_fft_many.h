#pragma once
#include "fft/cuda/batched/four_step_row.h"

namespace twiddle::small_fft {

// Real rows of 128 and 256 points, for many of them: several threads a row (four_step_row.h), and bins go through
// shared memory, so that global accesses are coalesced: one contiguous range a block, or ranges of 16 rows or more of
// each bin.
//
//   forward: load, FFTs over a, exchange | FFTs over b, bins | bins to shared memory | store      (| is a barrier)
template <int N, int A, int Threads>
struct ManyRows : FourStepRow<N, A> {
  using Row = FourStepRow<N, A>;
  static constexpr int threads = Threads, count = Threads / Row::lanes, pitch = Row::length;
  static_assert(count % 16 == 0 && Row::lanes * pitch % 16 == Row::lanes &&
                Row::lanes * Row::half_row % 16 == Row::lanes);
  struct alignas(16) Shared {
    Complex numbers[count * pitch];
  };
  using Registers = typename Row::Bins;

  TWIDDLE_HD static int lane_of(int thread) { return thread % Row::lanes; }
  TWIDDLE_HD static bool has(std::int64_t rows, std::int64_t block, int thread) {
    return Row::row_of(thread) < count_in_block<count>(rows, block);
  }
  TWIDDLE_HD static Complex* exchange(Shared& shared, int thread) {
    return shared.numbers + Row::row_of(thread) * pitch;
  }
  TWIDDLE_HD static Complex* bins(Shared& shared, int thread) {
    return shared.numbers + Row::row_of(thread) * Row::half_row;
  }
};

template <int N, int A, int Threads>
struct ManyRowsForward : ManyRows<N, A, Threads> {
  using Base = ManyRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchForward;
  static constexpr int steps = 4, points = Base::points, half_row = Base::half_row;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    if (!Base::has(a.count, block, thread)) return;
    const auto* const source = reinterpret_cast<const Complex*>(a.source) + block * Base::count * points;
    Base::forward_elements(source + Base::row_of(thread) * points, Base::lane_of(thread),
                           Base::exchange(shared, thread), roots<N>());
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (Base::has(a.count, block, thread))
      Base::forward_columns(Base::exchange(shared, thread), Base::lane_of(thread), r, roots<N>());
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (Base::has(a.count, block, thread)) Base::store_bins(r, Base::lane_of(thread), Base::bins(shared, thread), 1, A);
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const int rows = count_in_block<Base::count>(a.count, block);
    if (a.pitch == 0)
      return store_contiguous<half_row, half_row, Threads>(shared.numbers, a.spectrum + block * Base::count * half_row,
                                                           rows * half_row, thread);
    const int row = thread % Base::count;
    if (row >= rows) return;
    Complex* const spectrum = a.spectrum + block * Base::count + row;
    for (int bin = thread / Base::count; bin < half_row; bin += Threads / Base::count)
      spectrum[bin * a.pitch] = shared.numbers[row * half_row + bin];
  }
};

template <int N, int A, int Threads>
struct ManyRowsInverse : ManyRows<N, A, Threads> {
  using Base = ManyRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchInverse;
  static constexpr int steps = 4, points = Base::points, half_row = Base::half_row;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const int rows = count_in_block<Base::count>(a.count, block);
    if (a.pitch == 0)
      return load_contiguous<half_row, half_row, Base::count * half_row, Threads>(
          shared.numbers, a.spectrum + block * Base::count * half_row, rows * half_row, thread);
    const int row = thread % Base::count;
    if (row >= rows) return;
    const Complex* const spectrum = a.spectrum + block * Base::count + row;
    for (int bin = thread / Base::count; bin < half_row; bin += Threads / Base::count)
      shared.numbers[row * half_row + bin] = spectrum[bin * a.pitch];
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (!Base::has(a.count, block, thread)) return;
    Base::load_bins(r, Base::lane_of(thread), Base::bins(shared, thread), 1, A);
    Base::inverse_columns(Base::lane_of(thread), r, roots<N>());
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (Base::has(a.count, block, thread))
      Base::store_columns(r, Base::lane_of(thread), Base::exchange(shared, thread), 1, Base::gap);
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    if (!Base::has(a.count, block, thread)) return;
    auto* const target = reinterpret_cast<Complex*>(a.target) + block * Base::count * points;
    Base::inverse_elements(Base::exchange(shared, thread), Base::lane_of(thread), 1.f / N,
                           target + Base::row_of(thread) * points);
  }
};

}  // namespace twiddle::small_fft
