#pragma once
#include "fft/cuda/split_row.h"

// Blocks of real rows, each of which some threads share.
namespace twiddle::small_fft {

// Many rows: their bins go through shared memory, so that a block writes and reads them as one stretch, or sixteen
// rows and more of each bin.
template <int N, int A, int Threads>
struct SplitRows : SplitRow<N, A> {
  using Row = SplitRow<N, A>;
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
struct SplitRowsForward : SplitRows<N, A, Threads> {
  using Base = SplitRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchForward;
  static constexpr int steps = 4, points = Base::points, half_row = Base::half_row;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    if (!Base::has(a.count, block, thread)) return;
    const auto* const source = reinterpret_cast<const Complex*>(a.source) + block * Base::count * points;
    Base::forward_elements(source + Base::row_of(thread) * points, Base::lane_of(thread),
                           Base::exchange(shared, thread));
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (Base::has(a.count, block, thread))
      Base::forward_columns(Base::exchange(shared, thread), Base::lane_of(thread), r);
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (Base::has(a.count, block, thread)) Base::store_bins(r, Base::lane_of(thread), Base::bins(shared, thread), 1, A);
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const int rows = count_in_block<Base::count>(a.count, block);
    if (a.pitch == 0)
      return store_stretch<half_row, half_row, Threads>(shared.numbers, a.spectrum + block * Base::count * half_row,
                                                        rows * half_row, thread);
    const int row = thread % Base::count;
    if (row >= rows) return;
    Complex* const spectrum = a.spectrum + block * Base::count + row;
    for (int bin = thread / Base::count; bin < half_row; bin += Threads / Base::count)
      spectrum[bin * a.pitch] = shared.numbers[row * half_row + bin];
  }
};

template <int N, int A, int Threads>
struct SplitRowsInverse : SplitRows<N, A, Threads> {
  using Base = SplitRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchInverse;
  static constexpr int steps = 4, points = Base::points, half_row = Base::half_row;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const int rows = count_in_block<Base::count>(a.count, block);
    if (a.pitch == 0)
      return load_stretch<half_row, half_row, Base::count * half_row, Threads>(
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
    Base::inverse_columns(Base::lane_of(thread), r);
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

// Few rows, where it is the time from the first load to the last store that counts: bins go straight to and from
// memory, and there is one barrier.
template <int N, int A, int Threads>
struct DirectSplitRows : SplitRow<N, A> {
  using Row = SplitRow<N, A>;
  static constexpr int threads = Threads, count = Threads / Row::lanes, steps = 2;
  struct alignas(16) Shared {
    Complex numbers[count * Row::length];
  };
  using Registers = NoRegisters;

  struct Place {
    int row, lane;
    bool there;
  };
  // Threads whose elements lie together ...
  TWIDDLE_HD static Place by_elements(std::int64_t rows, std::int64_t block, int thread) {
    return place(rows, block, thread / Row::lanes, thread % Row::lanes);
  }
  // ... and their bins.
  template <class Arguments>
  TWIDDLE_HD static Place by_bins(const Arguments& a, std::int64_t block, int thread) {
    if (a.pitch == 0) return by_elements(a.count, block, thread);
    return place(a.count, block, thread % count, thread / count);
  }
  template <class Arguments>
  TWIDDLE_HD static auto bins(const Arguments& a, std::int64_t block, int row) {
    return a.spectrum + (block * count + row) * (a.pitch == 0 ? Row::half_row : 1);
  }
  template <class Arguments>
  TWIDDLE_HD static std::int64_t pitch(const Arguments& a) {
    return a.pitch == 0 ? 1 : a.pitch;
  }

 private:
  TWIDDLE_HD static Place place(std::int64_t rows, std::int64_t block, int row, int lane) {
    return {row, lane, row < count_in_block<count>(rows, block)};
  }
};

template <int N, int A, int Threads>
struct DirectSplitRowsForward : DirectSplitRows<N, A, Threads> {
  using Base = DirectSplitRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchForward;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto at = Base::by_elements(a.count, block, thread);
    if (!at.there) return;
    const auto* const source = reinterpret_cast<const Complex*>(a.source) + (block * Base::count + at.row) * (N / 2);
    Base::forward_elements(source, at.lane, shared.numbers + at.row * Base::length);
  }
  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto at = Base::by_bins(a, block, thread);
    if (!at.there) return;
    typename Base::Bins bins;
    Base::forward_columns(shared.numbers + at.row * Base::length, at.lane, bins);
    Base::store_bins(bins, at.lane, Base::bins(a, block, at.row), Base::pitch(a), A * Base::pitch(a));
  }
};

template <int N, int A, int Threads>
struct DirectSplitRowsInverse : DirectSplitRows<N, A, Threads> {
  using Base = DirectSplitRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchInverse;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto at = Base::by_bins(a, block, thread);
    if (!at.there) return;
    typename Base::Bins bins;
    Base::load_bins(bins, at.lane, Base::bins(a, block, at.row), Base::pitch(a), A * Base::pitch(a));
    Base::inverse_columns(at.lane, bins);
    Base::store_columns(bins, at.lane, shared.numbers + at.row * Base::length, 1, Base::gap);
  }
  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto at = Base::by_elements(a.count, block, thread);
    if (!at.there) return;
    auto* const target = reinterpret_cast<Complex*>(a.target) + (block * Base::count + at.row) * (N / 2);
    Base::inverse_elements(shared.numbers + at.row * Base::length, at.lane, 1.f / N, target);
  }
};

}  // namespace twiddle::small_fft
