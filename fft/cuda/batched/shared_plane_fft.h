#pragma once
#include "fft/cuda/batched/four_step_row.h"

// Real transforms of planes to [row][bins 0 .. W/2 of the row], one plane a block, all of which is in shared memory:
// for planes whose columns do not fit a thread's registers, and for few planes, since many threads share the work of
// one. Rows and columns are transformed by four-step FFTs (four_step_row.h), in place: each step writes what it has
// read, so that four steps with a barrier between two suffice.
namespace twiddle::small_fft {

// A column has N = A * B numbers: element b + B a, then number b + B k1, then bin k1 + A k2.
template <int N, int RowA, int A, int Threads>
struct SharedPlane {
  using Row = FourStepRow<N, RowA>;
  static constexpr int B = N / A, half_row = Row::half_row, bins = N * half_row, pitch = Row::length;
  static_assert(A * B == N && N % 16 == 0);
  static constexpr int threads = Threads, count = 1, steps = 4;
  struct alignas(16) Shared {
    Complex numbers[N * pitch];
    Complex roots[N];  // a copy of those in global memory, complete after the first barrier
  };
  using Registers = NoRegisters;

  TWIDDLE_HD static void place_roots(int thread, Shared& shared) {
    rounds<N>(thread, [&](int k) { shared.roots[k] = root<N>(k); });
  }
  // function(row, lane) for each row that the thread has a part of.
  template <class Function>
  TWIDDLE_HD static void each_row(int thread, const Function& function) {
    rounds<N * Row::lanes>(thread, [&](int i) { function(Row::row_of(i), i % Row::lanes); });
  }
  // function(row's bin, part), 0 <= part < Parts, for each column that the thread has a part of.
  template <int Parts, class Function>
  TWIDDLE_HD static void each_column(int thread, const Function& function) {
    rounds<half_row * Parts>(thread, [&](int i) { function(i % half_row, i / half_row); });
  }
  TWIDDLE_HD static Complex* row_at(Shared& shared, int row) { return shared.numbers + row * pitch; }
  TWIDDLE_HD static Complex* bin_at(Shared& shared, int bin, int row) {
    return row_at(shared, row) + bin + bin / RowA * (Row::gap - RowA);
  }

 private:
  // function(item) for each item of the thread, unrolled.
  template <int Items, class Function>
  TWIDDLE_HD static void rounds(int thread, const Function& function) {
    unrolled<(Items + Threads - 1) / Threads>([&](auto round) {
      const int item = thread + round * Threads;
      if ((round + 1) * Threads <= Items || item < Items) function(item);
    });
  }
};

template <int N, int RowA, int A, int Threads>
struct SharedPlaneForward : SharedPlane<N, RowA, A, Threads> {
  using Base = SharedPlane<N, RowA, A, Threads>;
  using typename Base::Shared, typename Base::Registers, typename Base::Row;
  using Arguments = BatchForward;
  static constexpr int B = Base::B, half_row = Base::half_row, pitch = Base::pitch;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto* const source = reinterpret_cast<const Complex*>(a.source) + block * (N * N / 2);
    Base::place_roots(thread, shared);
    Base::each_row(thread, [&](int row, int lane) {
      Row::forward_elements(source + row * (N / 2), lane, Base::row_at(shared, row), roots<N>());
    });
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments&, std::int64_t, int thread, Shared& shared, Registers&) {
    Base::each_row(thread, [&](int row, int lane) {
      Complex* const at = Base::row_at(shared, row);
      typename Row::Bins bins;
      Row::forward_columns(at, lane, bins, shared.roots);
      Row::store_bins(bins, lane, at, 1, Row::gap);
    });
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments&, std::int64_t, int thread, Shared& shared, Registers&) {
    Base::template each_column<B>(thread, [&](int bin, int b) {
      Complex* const at = Base::bin_at(shared, bin, b);
      Complex v[A];
      unrolled<A>([&](auto i) { v[i] = at[B * i * pitch]; });
      transform<forwards>(v);
      at[0] = v[0];
      unrolled<A - 1>([&](auto before) {
        constexpr int k1 = decltype(before)::value + 1;
        at[B * k1 * pitch] = v[k1] * shared.roots[k1 * b];
      });
    });
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    Complex* const spectrum = a.spectrum + block * Base::bins;
    Base::template each_column<A>(thread, [&](int bin, int k1) {
      const Complex* const at = Base::bin_at(shared, bin, B * k1);
      Complex v[B];
      unrolled<B>([&](auto b) { v[b] = at[b * pitch]; });
      transform<forwards>(v);
      unrolled<B>([&](auto k2) { spectrum[(k1 + A * k2) * half_row + bin] = v[k2]; });
    });
  }
};

template <int N, int RowA, int A, int Threads>
struct SharedPlaneInverse : SharedPlane<N, RowA, A, Threads> {
  using Base = SharedPlane<N, RowA, A, Threads>;
  using typename Base::Shared, typename Base::Registers, typename Base::Row;
  using Arguments = BatchInverse;
  static constexpr int B = Base::B, half_row = Base::half_row, pitch = Base::pitch;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const Complex* const spectrum = a.spectrum + block * Base::bins;
    Base::place_roots(thread, shared);
    Base::template each_column<A>(thread, [&](int bin, int k1) {
      Complex v[B];
      unrolled<B>([&](auto k2) { v[k2] = spectrum[(k1 + A * k2) * half_row + bin]; });
      transform<backwards>(v);
      Complex* const at = Base::bin_at(shared, bin, B * k1);
      unrolled<B>([&](auto b) { at[b * pitch] = v[b] * conj(root<N>(k1 * b)); });
    });
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments&, std::int64_t, int thread, Shared& shared, Registers&) {
    Base::template each_column<B>(thread, [&](int bin, int b) {
      Complex* const at = Base::bin_at(shared, bin, b);
      Complex v[A];
      unrolled<A>([&](auto k1) { v[k1] = at[B * k1 * pitch]; });
      transform<backwards>(v);
      unrolled<A>([&](auto i) { at[B * i * pitch] = v[i]; });
    });
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments&, std::int64_t, int thread, Shared& shared, Registers&) {
    Base::each_row(thread, [&](int row, int lane) {
      Complex* const at = Base::row_at(shared, row);
      typename Row::Bins bins;
      Row::load_bins(bins, lane, at, 1, Row::gap);
      Row::inverse_columns(lane, bins, shared.roots);
      Row::store_columns(bins, lane, at, 1, Row::gap);
    });
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    auto* const target = reinterpret_cast<Complex*>(a.target) + block * (N * N / 2);
    Base::each_row(thread, [&](int row, int lane) {
      Row::inverse_elements(Base::row_at(shared, row), lane, 1.f / (N * N), target + row * (N / 2));
    });
  }
};

}  // namespace twiddle::small_fft
