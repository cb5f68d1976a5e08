#pragma once
#include "apps/bench/cuda/row_pairs.h"

// A real row that several threads share, as a four-step FFT (Bailey, 1990) of its m = A * B complex numbers:
//
//   1. for each b: transform elements b + B a over a, A points      -> number k1 of b
//   2. multiply it by the twiddle factor e^(-2 pi i b k1 / m)
//   3. exchange, through shared memory: written by b, read by k1
//   4. for each k1: transform over b, B points                      -> Z[k1 + A k2], number k2 of column k1
//
// and then the row's bins from pairs of columns (row_pairs.h).
namespace twiddle::small_fft {

// `roots`: the N-th roots of unity, in global memory or in shared memory.
template <int N, int A>
struct FourStepRow : RowPairs<N, A> {
  using Columns = RowPairs<N, A>;
  using Columns::B, Columns::lanes, typename Columns::Bins;
  static constexpr int elements = B / lanes;  // number of indices b per thread: lane, lane + lanes, ...
  static_assert(16 % lanes == 0 && B % lanes == 0);
  // The exchange is [b][k1], padded: `gap` from one b to the next. Bins may be stored in the same way.
  static constexpr int gap = A + 1, length = gap * B + 1;

  // Returns the thread's row in the block. The swizzle makes the 16 threads of half a warp, whose 8-byte accesses are
  // one transaction, use 16 different pairs of banks.
  TWIDDLE_HD static int row_of(int thread) {
    constexpr int together = 16 / lanes;
    const int group = thread / lanes;
    return group / 16 * 16 + group % together * lanes + group / together % lanes;
  }

  TWIDDLE_HD static void forward_elements(const Complex* source, int lane, Complex* exchange, const Complex* roots) {
    Complex v[elements][A], factors[elements][A];
    unrolled<elements>([&](auto e) {
      const int b = lane + lanes * e;
      unrolled<A>([&](auto i) { v[e][i] = source[b + B * i], factors[e][i] = roots[2 * i * b]; });
    });
    unrolled<elements>([&](auto e) {
      transform<forwards>(v[e]);
      store_twiddled(v[e], exchange + gap * (lane + lanes * e), 1, [&](auto k1) { return factors[e][k1]; });
    });
  }
  TWIDDLE_HD static void forward_columns(const Complex* exchange, int lane, Bins& bins, const Complex* roots) {
    Complex factors[B];
    Columns::load_factors(factors, lane, roots);
    Columns::load_columns(bins, lane, exchange, 1, gap);
    transform<forwards>(bins.low);
    transform<forwards>(bins.high);
    Columns::to_bins(bins, lane, factors);
  }

  // The inverse of step 4: from bins to the content of the exchange.
  TWIDDLE_HD static void inverse_columns(int lane, Bins& bins, const Complex* roots) {
    Complex factors[B];
    Columns::load_factors(factors, lane, roots);
    Columns::from_bins(bins, lane, factors);
    transform<backwards>(bins.low);
    transform<backwards>(bins.high);
    const int low = Columns::low_column(lane), high = Columns::high_column(lane);
    unrolled<B - 1>([&](auto before) {
      constexpr int b = decltype(before)::value + 1;
      bins.low[b] = bins.low[b] * conj(roots[2 * low * b]);
      bins.high[b] = bins.high[b] * conj(roots[2 * high * b]);
    });
  }
  TWIDDLE_HD static void inverse_elements(const Complex* exchange, int lane, float scale, Complex* target) {
    unrolled<elements>([&](auto e) {
      const Complex* const at = exchange + gap * (lane + lanes * e);
      Complex v[A];
      unrolled<A>([&](auto column) { v[column] = at[column]; });
      transform<backwards>(v);
      unrolled<A>([&](auto i) { target[lane + lanes * e + B * i] = scaled(v[i], scale); });
    });
  }
};

}  // namespace twiddle::small_fft
