#pragma once
#include "apps/bench/batched_fft.h"
#include "apps/bench/cuda/block_steps.h"
#include "framework/for_each.h"

// Complex transforms of columns: the second launch for planes that are too large for a block. The first one transformed
// their rows, to [row's bin][plane][row], where a column is contiguous. A block takes 16 columns that are adjacent in
// the spectrum, so that it accesses contiguous ranges of 128 bytes there. Several threads share a column, as a
// four-step FFT of N = A * B points (four_step_row.h).
namespace twiddle::small_fft {

// Columns are numbered so that consecutive ones are adjacent in the spectrum: index = outer * inner.value() + inner.
// Bin k of a column is at spectrum + outer * outer_bins + inner + k * pitch; its elements are contiguous in `rows`, as
// column outer * outer_column + inner * inner_column.
struct ColumnArguments {
  std::int64_t count;  // of columns
  Divisor inner;
  std::int64_t outer_bins, pitch, outer_column, inner_column;
  Complex *rows, *spectrum;
};

inline ColumnArguments column_arguments(const FftBatch& batch, Complex* rows, Complex* spectra) {
  const std::int64_t half_row = batch.width / 2 + 1;
  if (batch.layout == BinLayout::plane_major)
    return {.count = batch.count * half_row,
            .inner = Divisor(half_row),
            .outer_bins = batch.height * half_row,
            .pitch = half_row,
            .outer_column = 1,
            .inner_column = batch.count,
            .rows = rows,
            .spectrum = spectra};
  return {.count = batch.count * half_row,
          .inner = Divisor(batch.count),
          .outer_bins = batch.count,
          .pitch = half_row * batch.count,
          .outer_column = batch.count,
          .inner_column = 1,
          .rows = rows,
          .spectrum = spectra};
}

template <int N, int A, int Together = 16>
struct Columns : BlockThread {
  using BlockThread::BlockThread;
  static constexpr int B = N / A, lanes = B, each = A / lanes;  // a thread has columns k1 = lane + lanes i, i < each
  static constexpr int threads = Together * lanes, count = Together, forward_steps = 2, inverse_steps = 2;
  static constexpr int pitch = N + B + 1;
  static_assert(A * B == N && 16 % lanes == 0 && A % lanes == 0 && Together % 16 == 0);
  static_assert(pitch % 2 == 1);  // no bank conflicts between the 16 threads of half a warp
  struct alignas(16) Shared {
    Complex numbers[count * pitch];
  };

  // A points over the elements b + B i of a column, and twiddle factors, into the exchange.
  TWIDDLE_HD void forward(Index<0>, const ColumnArguments& a, Shared& shared) {
    const Share at = by_elements(a);
    if (!at.there) return;
    const Complex* const from = elements(a, at);
    Complex v[A];
    unrolled<A>([&](auto i) { v[i] = from[B * i]; });
    transform<forwards>(v);
    store_twiddled(v, exchange(shared, at, at.part), 1, [&](int k1) { return root<N>(k1 * at.part); });
  }

  // B points, to the spectrum; adjacent threads have adjacent columns there, so that stores are coalesced.
  TWIDDLE_HD void forward(Index<1>, const ColumnArguments& a, Shared& shared) {
    const Share at = by_bins(a);
    if (!at.there) return;
    Complex* const to = bins(a, at);
    unrolled<each>([&](auto i) {
      const int k1 = at.part + lanes * i;
      Complex v[B];
      unrolled<B>([&](auto b) { v[b] = exchange(shared, at, b)[k1]; });
      transform<forwards>(v);
      unrolled<B>([&](auto k2) { to[(k1 + A * k2) * a.pitch] = v[k2]; });
    });
  }

  // B points backwards. All loads are issued before the first transform, so that they are in flight together.
  TWIDDLE_HD void inverse(Index<0>, const ColumnArguments& a, Shared& shared) {
    const Share at = by_bins(a);
    if (!at.there) return;
    const Complex* const from = bins(a, at);
    Complex v[each][B];
    unrolled<each>([&](auto i) {
      const int k1 = at.part + lanes * i;
      unrolled<B>([&](auto k2) { v[i][k2] = from[(k1 + A * k2) * a.pitch]; });
    });
    unrolled<each>([&](auto i) {
      const int k1 = at.part + lanes * i;
      transform<backwards>(v[i]);
      unrolled<B>([&](auto b) { exchange(shared, at, b)[k1] = v[i][b] * conj(root<N>(k1 * b)); });
    });
  }

  // A points backwards, scaled, to `rows`.
  TWIDDLE_HD void inverse(Index<1>, const ColumnArguments& a, Shared& shared) {
    const Share at = by_elements(a);
    if (!at.there) return;
    const Complex* const from = exchange(shared, at, at.part);
    Complex v[A];
    unrolled<A>([&](auto k1) { v[k1] = from[k1]; });
    transform<backwards>(v);
    Complex* const to = elements(a, at);
    unrolled<A>([&](auto i) { to[B * i] = scaled(v[i], 1.f / N); });
  }

 private:
  struct Share {  // the column of the block and the part of it that a thread computes
    int column;
    int part;  // b of elements, or k1 of bins
    bool there;
    std::int64_t outer, inner;
  };
  // Adjacent threads have adjacent elements in `rows` (with a swizzle against bank conflicts) ...
  TWIDDLE_HD Share by_elements(const ColumnArguments& a) const {
    constexpr int together = 16 / lanes;
    const int group = thread / lanes;
    return place(a, group / 16 * 16 + group % together * lanes + group / together % lanes, thread % lanes);
  }
  // ... or adjacent bins in the spectrum.
  TWIDDLE_HD Share by_bins(const ColumnArguments& a) const { return place(a, thread % count, thread / count); }
  TWIDDLE_HD Share place(const ColumnArguments& a, int column, int part) const {
    const std::int64_t index = block * count + column, outer = a.inner.quotient(index);
    return {column, part, index < a.count, outer, index - outer * a.inner.value()};
  }
  TWIDDLE_HD static Complex* elements(const ColumnArguments& a, const Share& at) {
    return a.rows + (at.outer * a.outer_column + at.inner * a.inner_column) * N + at.part;
  }
  TWIDDLE_HD static Complex* bins(const ColumnArguments& a, const Share& at) {
    return a.spectrum + at.outer * a.outer_bins + at.inner;
  }
  // The exchange of a column is [b][k1], padded.
  TWIDDLE_HD static Complex* exchange(Shared& shared, const Share& at, int b) {
    return shared.numbers + at.column * pitch + (A + 1) * b;
  }
};

}  // namespace twiddle::small_fft
