#pragma once
#include "apps/bench/cuda/four_step_row.h"

// Real transforms of planes to [row][bins 0 .. W/2 of the row]. Each block transforms one plane in shared memory. This
// is for planes whose columns exceed a thread's registers, and for few planes, because many threads share a plane. Rows
// and columns are transformed by four-step FFTs (four_step_row.h), in place. A step writes the elements that it has
// read, so four steps with barriers between them are enough.
namespace twiddle::small_fft {

// A column has N = A * B numbers: element b + B a, then number b + B k1, then bin k1 + A k2.
template <int N, int RowA, int A, int Threads>
struct SharedPlane : BlockThread {
  using BlockThread::BlockThread;
  using Row = FourStepRow<N, RowA>;
  static constexpr int B = N / A, half_row = Row::half_row, bins = N * half_row, pitch = Row::length;
  static constexpr int threads = Threads, count = 1, forward_steps = 4, inverse_steps = 4;
  static_assert(A * B == N && N % 16 == 0);
  struct alignas(16) Shared {
    Complex numbers[N * pitch];
    Complex roots[N];  // a copy from global memory, complete after the first barrier
  };

  // Rows, first part: from global memory into the exchange of each row.
  TWIDDLE_HD void forward(Index<0>, const BatchForward& a, Shared& shared) {
    copy_roots(shared);
    each_row([&](int row, int lane) {
      Row::forward_elements(a.source + block * (N * N / 2) + row * (N / 2), lane, row_at(shared, row), roots<N>());
    });
  }

  // Rows, second part: each row's bins replace its exchange, in the same padded places.
  TWIDDLE_HD void forward(Index<1>, const BatchForward&, Shared& shared) {
    each_row([&](int row, int lane) {
      Complex* const at = row_at(shared, row);
      typename Row::Bins row_bins;
      Row::forward_columns(at, lane, row_bins, shared.roots);
      Row::store_bins(row_bins, lane, at, 1, Row::gap);
    });
  }

  // Columns, first part: A points and twiddle factors, in place.
  TWIDDLE_HD void forward(Index<2>, const BatchForward&, Shared& shared) {
    each_column<B>([&](int bin, int b) {
      Complex* const at = bin_at(shared, bin, b);
      Complex v[A];
      unrolled<A>([&](auto i) { v[i] = at[B * i * pitch]; });
      transform<forwards>(v);
      store_twiddled(v, at, B * pitch, [&](int k1) { return shared.roots[k1 * b]; });
    });
  }

  // Columns, second part: B points, to global memory; adjacent threads have adjacent bins of a row.
  TWIDDLE_HD void forward(Index<3>, const BatchForward& a, Shared& shared) {
    Complex* const spectrum = a.spectrum + block * bins;
    each_column<A>([&](int bin, int k1) {
      const Complex* const at = bin_at(shared, bin, B * k1);
      Complex v[B];
      unrolled<B>([&](auto b) { v[b] = at[b * pitch]; });
      transform<forwards>(v);
      unrolled<B>([&](auto k2) { spectrum[(k1 + A * k2) * half_row + bin] = v[k2]; });
    });
  }

  // Columns, second part backwards, from global memory.
  TWIDDLE_HD void inverse(Index<0>, const BatchInverse& a, Shared& shared) {
    const Complex* const spectrum = a.spectrum + block * bins;
    copy_roots(shared);
    each_column<A>([&](int bin, int k1) {
      Complex v[B];
      unrolled<B>([&](auto k2) { v[k2] = spectrum[(k1 + A * k2) * half_row + bin]; });
      transform<backwards>(v);
      Complex* const at = bin_at(shared, bin, B * k1);
      unrolled<B>([&](auto b) { at[b * pitch] = v[b] * conj(root<N>(k1 * b)); });
    });
  }

  // Columns, first part backwards, in place.
  TWIDDLE_HD void inverse(Index<1>, const BatchInverse&, Shared& shared) {
    each_column<B>([&](int bin, int b) {
      Complex* const at = bin_at(shared, bin, b);
      Complex v[A];
      unrolled<A>([&](auto k1) { v[k1] = at[B * k1 * pitch]; });
      transform<backwards>(v);
      unrolled<A>([&](auto i) { at[B * i * pitch] = v[i]; });
    });
  }

  // Rows, second part backwards, in place.
  TWIDDLE_HD void inverse(Index<2>, const BatchInverse&, Shared& shared) {
    each_row([&](int row, int lane) {
      Complex* const at = row_at(shared, row);
      typename Row::Bins row_bins;
      Row::load_bins(row_bins, lane, at, 1, Row::gap);
      Row::inverse_columns(lane, row_bins, shared.roots);
      Row::store_columns(row_bins, lane, at, 1, Row::gap);
    });
  }

  // Rows, first part backwards, to global memory.
  TWIDDLE_HD void inverse(Index<3>, const BatchInverse& a, Shared& shared) {
    each_row([&](int row, int lane) {
      Row::inverse_elements(row_at(shared, row), lane, 1.f / (N * N), a.target + block * (N * N / 2) + row * (N / 2));
    });
  }

 private:
  TWIDDLE_HD void copy_roots(Shared& shared) const {
    rounds<N>([&](int k) { shared.roots[k] = root<N>(k); });
  }
  // Calls function(row, lane) for each row that the thread shares.
  template <class Function>
  TWIDDLE_HD void each_row(const Function& function) const {
    rounds<N * Row::lanes>([&](int i) { function(Row::row_of(i), i % Row::lanes); });
  }
  // Calls function(row's bin, part), 0 <= part < Parts, for each column that the thread shares.
  template <int Parts, class Function>
  TWIDDLE_HD void each_column(const Function& function) const {
    rounds<half_row * Parts>([&](int i) { function(i % half_row, i / half_row); });
  }
  // Calls function(item) for each item of the thread, unrolled.
  template <int Items, class Function>
  TWIDDLE_HD void rounds(const Function& function) const {
    unrolled<(Items + Threads - 1) / Threads>([&](auto round) {
      const int item = thread + round * Threads;
      if ((round + 1) * Threads <= Items || item < Items) function(item);
    });
  }
  TWIDDLE_HD static Complex* row_at(Shared& shared, int row) { return shared.numbers + row * pitch; }
  TWIDDLE_HD static Complex* bin_at(Shared& shared, int bin, int row) {
    return row_at(shared, row) + bin + bin / RowA * (Row::gap - RowA);
  }
};

}  // namespace twiddle::small_fft
