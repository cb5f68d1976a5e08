#pragma once
#include "fft/cuda/batched/row_pairs.h"

namespace twiddle::small_fft {

// Real rows of 64 to 256 points, for few of them, where the latency from the first load to the last store counts: many
// threads a row, N / (4 B), straight from and to global memory, with few numbers a thread in each of three steps. It is
// the four-step FFT with its first transform of A = A1 * A2 points split again:
//
//   step  transforms          of                           and then
//   0     A1 points, over a1  elements b + B (a2 + A2 a1)  twiddle factor a2 k1, exchange [k1][a2][b]
//   1     A2 points, over a2  each k1 and b                twiddle factor b (k1 + A1 k2), exchange [b][k1 + A1 k2]
//   2     B points, over b    columns k1 + A1 k2           the row's bins (row_pairs.h), stored
//
// The inverse takes the same steps backwards.
template <int N, int A1, int A2, int Threads>
struct FewRows : RowPairs<N, A1 * A2> {
  using Columns = RowPairs<N, A1 * A2>;
  using Columns::B, Columns::lanes, typename Columns::Bins;
  static constexpr int threads = Threads, count = Threads / lanes, steps = 3;
  // How many transforms a thread does in the first and in the second step.
  static constexpr int first_each = B * A2 / lanes, second_each = B * A1 / lanes;
  static_assert(B * A2 % lanes == 0 && B * A1 % lanes == 0 && Threads % lanes == 0);
  // Of the two exchanges, from one k1 and from one b to the next: padded against bank conflicts.
  static constexpr int first_pitch = B * A2 + B, second_pitch = A1 * A2 + 1;
  static constexpr int first_length = A1 * first_pitch, second_length = B * second_pitch + 1;
  struct alignas(16) Shared {
    Complex first[count * first_length], second[count * second_length];
  };
  struct Registers {
    Complex first[first_each][A1], second[second_each][A2], pairs[B];  // twiddle factors of the three steps
  };

  // The row and lane of a thread. In by_elements() adjacent threads have adjacent elements ...
  struct RowLane {
    int row, lane;
    bool there;
  };
  TWIDDLE_HD static RowLane by_elements(std::int64_t rows, std::int64_t block, int thread) {
    return place(rows, block, thread / lanes, thread % lanes);
  }
  // ... and in by_bins() adjacent bins in memory: of one row, or with [bin][row] of adjacent rows.
  template <class Arguments>
  TWIDDLE_HD static RowLane by_bins(const Arguments& a, std::int64_t block, int thread) {
    if (a.pitch == 0) return by_elements(a.count, block, thread);
    return place(a.count, block, thread % count, thread / count);
  }
  template <class Arguments>
  TWIDDLE_HD static auto bins(const Arguments& a, std::int64_t block, int row) {
    return a.spectrum + (block * count + row) * (a.pitch == 0 ? Columns::half_row : 1);
  }

  // Loads the twiddle factors, which takes place before the wait for the kernel before this one.
  template <class Arguments>
  TWIDDLE_HD static void prepare(const Arguments& a, int thread, Registers& r) {
    const int lane = thread % lanes;
    unrolled<first_each>([&](auto e) {
      const int a2 = (lane + lanes * e) / B;
      unrolled<A1>([&](auto k1) { r.first[e][k1] = root<A1 * A2>(a2 * k1); });
    });
    unrolled<second_each>([&](auto e) {
      const int item = lane + lanes * e, b = item % B, k1 = item / B;
      unrolled<A2>([&](auto k2) { r.second[e][k2] = root<N / 2>(b * (k1 + A1 * k2)); });
    });
    Columns::load_factors(r.pairs, a.pitch == 0 ? lane : thread / count, roots<N>());
  }

 private:
  TWIDDLE_HD static RowLane place(std::int64_t rows, std::int64_t block, int row, int lane) {
    return {row, lane, row < count_in_block<count>(rows, block)};
  }
};

template <int N, int A1, int A2, int Threads>
struct FewRowsForward : FewRows<N, A1, A2, Threads> {
  using Base = FewRows<N, A1, A2, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchForward;
  static constexpr int A = A1 * A2, B = Base::B, lanes = Base::lanes;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::by_elements(a.count, block, thread);
    if (!at.there) return;
    const auto* const source = reinterpret_cast<const Complex*>(a.source) + (block * Base::count + at.row) * (N / 2);
    Complex* const to = shared.first + at.row * Base::first_length;
    Complex v[Base::first_each][A1];
    unrolled<Base::first_each>(
        [&](auto e) { unrolled<A1>([&](auto a1) { v[e][a1] = source[at.lane + lanes * e + B * A2 * a1]; }); });
    unrolled<Base::first_each>([&](auto e) {
      transform<forwards>(v[e]);
      unrolled<A1>([&](auto k1) {
        to[k1 * Base::first_pitch + at.lane + lanes * e] = k1 == 0 ? v[e][0] : v[e][k1] * r.first[e][k1];
      });
    });
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::by_elements(a.count, block, thread);
    if (!at.there) return;
    const Complex* const from = shared.first + at.row * Base::first_length;
    Complex* const to = shared.second + at.row * Base::second_length;
    unrolled<Base::second_each>([&](auto e) {
      const int item = at.lane + lanes * e, b = item % B, k1 = item / B;
      Complex v[A2];
      unrolled<A2>([&](auto a2) { v[a2] = from[k1 * Base::first_pitch + b + B * a2]; });
      transform<forwards>(v);
      unrolled<A2>([&](auto k2) { to[Base::second_pitch * b + k1 + A1 * k2] = v[k2] * r.second[e][k2]; });
    });
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::by_bins(a, block, thread);
    if (!at.there) return;
    typename Base::Bins bins;
    Base::load_columns(bins, at.lane, shared.second + at.row * Base::second_length, 1, Base::second_pitch);
    transform<forwards>(bins.low);
    transform<forwards>(bins.high);
    Base::to_bins(bins, at.lane, r.pairs);
    Complex* const spectrum = Base::bins(a, block, at.row);
    if (a.pitch == 0)
      Base::store_bins(bins, at.lane, spectrum, 1, A);
    else
      Base::store_bins(bins, at.lane, spectrum, a.pitch, A * a.pitch);
  }
};

template <int N, int A1, int A2, int Threads>
struct FewRowsInverse : FewRows<N, A1, A2, Threads> {
  using Base = FewRows<N, A1, A2, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchInverse;
  static constexpr int A = A1 * A2, B = Base::B, lanes = Base::lanes;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::by_bins(a, block, thread);
    if (!at.there) return;
    typename Base::Bins bins;
    const Complex* const spectrum = Base::bins(a, block, at.row);
    if (a.pitch == 0)
      Base::load_bins(bins, at.lane, spectrum, 1, A);
    else
      Base::load_bins(bins, at.lane, spectrum, a.pitch, A * a.pitch);
    Base::from_bins(bins, at.lane, r.pairs);
    transform<backwards>(bins.low);
    transform<backwards>(bins.high);
    Base::store_columns(bins, at.lane, shared.second + at.row * Base::second_length, 1, Base::second_pitch);
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::by_elements(a.count, block, thread);
    if (!at.there) return;
    const Complex* const from = shared.second + at.row * Base::second_length;
    Complex* const to = shared.first + at.row * Base::first_length;
    unrolled<Base::second_each>([&](auto e) {
      const int item = at.lane + lanes * e, b = item % B, k1 = item / B;
      Complex v[A2];
      unrolled<A2>([&](auto k2) { v[k2] = from[Base::second_pitch * b + k1 + A1 * k2] * conj(r.second[e][k2]); });
      transform<backwards>(v);
      unrolled<A2>([&](auto a2) { to[k1 * Base::first_pitch + b + B * a2] = v[a2]; });
    });
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    const auto at = Base::by_elements(a.count, block, thread);
    if (!at.there) return;
    auto* const target = reinterpret_cast<Complex*>(a.target) + (block * Base::count + at.row) * (N / 2);
    const Complex* const from = shared.first + at.row * Base::first_length;
    unrolled<Base::first_each>([&](auto e) {
      Complex v[A1];
      unrolled<A1>([&](auto k1) {
        const Complex number = from[k1 * Base::first_pitch + at.lane + lanes * e];
        v[k1] = k1 == 0 ? number : number * conj(r.first[e][k1]);
      });
      transform<backwards>(v);
      unrolled<A1>([&](auto a1) { target[at.lane + lanes * e + B * A2 * a1] = scaled(v[a1], 1.f / N); });
    });
  }
};

}  // namespace twiddle::small_fft
