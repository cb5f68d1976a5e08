#pragma once
#include "apps/bench/cuda/row_pairs.h"

namespace twiddle::small_fft {

// Real rows of 64 to 256 points, for few of them, where the latency from the first load to the last store counts. A row
// has N / (4 B) threads, which access global memory directly and hold few numbers in each of three steps. This is the
// four-step FFT with its first transform of A = A1 * A2 points split again:
//
//   step  transforms          of                           and then
//   0     A1 points, over a1  elements b + B (a2 + A2 a1)  twiddle factor a2 k1, exchange [k1][a2][b]
//   1     A2 points, over a2  each k1 and b                twiddle factor b (k1 + A1 k2), exchange [b][k1 + A1 k2]
//   2     B points, over b    columns k1 + A1 k2           the row's bins (row_pairs.h), stored
//
// The inverse takes the same steps backwards.
template <int N, int A1, int A2, int Threads>
struct FewRows : BlockThread {
  using BlockThread::BlockThread;
  static constexpr int A = A1 * A2, points = N / 2;
  using Row = RowPairs<N, A>;
  static constexpr int B = Row::B, lanes = Row::lanes;
  static constexpr int threads = Threads, count = Threads / lanes, forward_steps = 3, inverse_steps = 3;
  // How many transforms a thread does in the first and in the second step.
  static constexpr int first_each = B * A2 / lanes, second_each = B * A1 / lanes;
  static_assert(B * A2 % lanes == 0 && B * A1 % lanes == 0 && Threads % lanes == 0);
  // Strides of the two exchanges, from one k1 and from one b to the next: padded against bank conflicts.
  static constexpr int first_pitch = B * A2 + B, second_pitch = A1 * A2 + 1;
  static constexpr int first_length = A1 * first_pitch, second_length = B * second_pitch + 1;
  struct alignas(16) Shared {
    Complex first[count * first_length], second[count * second_length];
  };
  // Twiddle factors of the three steps.
  Complex first_factors[first_each][A1], second_factors[second_each][A2], pair_factors[B];

  // Loads the twiddle factors, which takes place before the wait for the kernel before this one.
  template <class Arguments>
  TWIDDLE_HD void prepare(const Arguments& a) {
    const int lane = thread % lanes;
    unrolled<first_each>([&](auto e) {
      const int a2 = (lane + lanes * e) / B;
      unrolled<A1>([&](auto k1) { first_factors[e][k1] = root<A>(a2 * k1); });
    });
    unrolled<second_each>([&](auto e) {
      const int item = lane + lanes * e, b = item % B, k1 = item / B;
      unrolled<A2>([&](auto k2) { second_factors[e][k2] = root<points>(b * (k1 + A1 * k2)); });
    });
    Row::load_factors(pair_factors, a.pitch == 0 ? lane : thread / count, roots<N>());
  }

  // A1 points, of adjacent elements in adjacent threads.
  TWIDDLE_HD void forward(Index<0>, const BatchForward& a, Shared& shared) {
    const RowLane at = by_elements(a.count);
    if (!at.there) return;
    const Complex* const source = a.source + (block * count + at.row) * points;
    Complex* const to = shared.first + at.row * first_length;
    Complex v[first_each][A1];
    unrolled<first_each>(
        [&](auto e) { unrolled<A1>([&](auto a1) { v[e][a1] = source[at.lane + lanes * e + B * A2 * a1]; }); });
    unrolled<first_each>([&](auto e) {
      transform<forwards>(v[e]);
      store_twiddled(v[e], to + at.lane + lanes * e, first_pitch, [&](auto k1) { return first_factors[e][k1]; });
    });
  }

  // A2 points. Here as in step 0 a thread has several transforms, `lanes` apart.
  TWIDDLE_HD void forward(Index<1>, const BatchForward& a, Shared& shared) {
    const RowLane at = by_elements(a.count);
    if (!at.there) return;
    const Complex* const from = shared.first + at.row * first_length;
    Complex* const to = shared.second + at.row * second_length;
    unrolled<second_each>([&](auto e) {
      const int item = at.lane + lanes * e, b = item % B, k1 = item / B;
      Complex v[A2];
      unrolled<A2>([&](auto a2) { v[a2] = from[k1 * first_pitch + b + B * a2]; });
      transform<forwards>(v);
      unrolled<A2>([&](auto k2) { to[second_pitch * b + k1 + A1 * k2] = v[k2] * second_factors[e][k2]; });
    });
  }

  // B points: the two columns of which the row's bins are made, straight to global memory.
  TWIDDLE_HD void forward(Index<2>, const BatchForward& a, Shared& shared) {
    const RowLane at = by_bins(a);
    if (!at.there) return;
    typename Row::Bins bins;
    Row::load_columns(bins, at.lane, shared.second + at.row * second_length, 1, second_pitch);
    transform<forwards>(bins.low);
    transform<forwards>(bins.high);
    Row::to_bins(bins, at.lane, pair_factors);
    if (a.pitch == 0)
      Row::store_bins(bins, at.lane, row_bins(a, at.row), 1, A);
    else
      Row::store_bins(bins, at.lane, row_bins(a, at.row), a.pitch, A * a.pitch);
  }

  // The two columns from the row's bins, and B points backwards.
  TWIDDLE_HD void inverse(Index<0>, const BatchInverse& a, Shared& shared) {
    const RowLane at = by_bins(a);
    if (!at.there) return;
    typename Row::Bins bins;
    if (a.pitch == 0)
      Row::load_bins(bins, at.lane, row_bins(a, at.row), 1, A);
    else
      Row::load_bins(bins, at.lane, row_bins(a, at.row), a.pitch, A * a.pitch);
    Row::from_bins(bins, at.lane, pair_factors);
    transform<backwards>(bins.low);
    transform<backwards>(bins.high);
    Row::store_columns(bins, at.lane, shared.second + at.row * second_length, 1, second_pitch);
  }

  // A2 points backwards.
  TWIDDLE_HD void inverse(Index<1>, const BatchInverse& a, Shared& shared) {
    const RowLane at = by_elements(a.count);
    if (!at.there) return;
    const Complex* const from = shared.second + at.row * second_length;
    Complex* const to = shared.first + at.row * first_length;
    unrolled<second_each>([&](auto e) {
      const int item = at.lane + lanes * e, b = item % B, k1 = item / B;
      Complex v[A2];
      unrolled<A2>([&](auto k2) { v[k2] = from[second_pitch * b + k1 + A1 * k2] * conj(second_factors[e][k2]); });
      transform<backwards>(v);
      unrolled<A2>([&](auto a2) { to[k1 * first_pitch + b + B * a2] = v[a2]; });
    });
  }

  // A1 points backwards, scaled, straight to global memory.
  TWIDDLE_HD void inverse(Index<2>, const BatchInverse& a, Shared& shared) {
    const RowLane at = by_elements(a.count);
    if (!at.there) return;
    Complex* const target = a.target + (block * count + at.row) * points;
    const Complex* const from = shared.first + at.row * first_length;
    unrolled<first_each>([&](auto e) {
      Complex v[A1];
      unrolled<A1>([&](auto k1) {
        const Complex number = from[k1 * first_pitch + at.lane + lanes * e];
        v[k1] = k1 == 0 ? number : number * conj(first_factors[e][k1]);
      });
      transform<backwards>(v);
      unrolled<A1>([&](auto a1) { target[at.lane + lanes * e + B * A2 * a1] = scaled(v[a1], 1.f / N); });
    });
  }

 private:
  // The thread's row in the block, and its lane. In by_elements() adjacent threads have adjacent elements ...
  struct RowLane {
    int row, lane;
    bool there;
  };
  TWIDDLE_HD RowLane by_elements(std::int64_t rows) const { return place(rows, thread / lanes, thread % lanes); }
  // ... and in by_bins() adjacent bins in memory: of one row, or with [bin][row] of adjacent rows.
  template <class Arguments>
  TWIDDLE_HD RowLane by_bins(const Arguments& a) const {
    return a.pitch == 0 ? by_elements(a.count) : place(a.count, thread % count, thread / count);
  }
  TWIDDLE_HD RowLane place(std::int64_t rows, int row, int lane) const {
    return {row, lane, row < count_in_block<count>(rows, block)};
  }
  template <class Arguments>
  TWIDDLE_HD auto row_bins(const Arguments& a, int row) const {
    return a.spectrum + (block * count + row) * (a.pitch == 0 ? Row::half_row : 1);
  }
};

}  // namespace twiddle::small_fft
