#pragma once
#include "apps/bench/cuda/four_step_row.h"

namespace twiddle::small_fft {

// Real rows of 128 and 256 points, for many of them. Several threads share a row (four_step_row.h). Bins go through
// shared memory, so that global accesses are coalesced: one contiguous range per block, or ranges of at least 16 rows
// of each bin.
//
//   forward: load, FFTs over a, exchange | FFTs over b, bins | bins to shared memory | store      (| is a barrier)
template <int N, int A, int Threads>
struct ManyRows : BlockThread {
  using BlockThread::BlockThread;
  using Row = FourStepRow<N, A>;
  static constexpr int points = Row::points, half_row = Row::half_row, pitch = Row::length;
  static constexpr int threads = Threads, count = Threads / Row::lanes, forward_steps = 4, inverse_steps = 4;
  static_assert(count % 16 == 0 && Row::lanes * pitch % 16 == Row::lanes && Row::lanes * half_row % 16 == Row::lanes);
  struct alignas(16) Shared {
    Complex numbers[count * pitch];
  };
  typename Row::Bins bins;

  // Steps 1 to 3 of the four-step FFT (four_step_row.h), into the exchange.
  TWIDDLE_HD void forward(Index<0>, const BatchForward& a, Shared& shared) {
    if (has(a.count))
      Row::forward_elements(a.source + block * count * points + row() * points, lane(), exchange(shared), roots<N>());
  }

  // Step 4, and the row's bins, which stay in registers: the exchange is still being read.
  TWIDDLE_HD void forward(Index<1>, const BatchForward& a, Shared& shared) {
    if (has(a.count)) Row::forward_columns(exchange(shared), lane(), bins, roots<N>());
  }

  // The bins to shared memory, which may be overwritten now.
  TWIDDLE_HD void forward(Index<2>, const BatchForward& a, Shared& shared) {
    if (has(a.count)) Row::store_bins(bins, lane(), row_bins(shared), 1, A);
  }

  // From there to global memory: as one contiguous range, or for [bin][row] with adjacent threads on adjacent rows.
  TWIDDLE_HD void forward(Index<3>, const BatchForward& a, Shared& shared) {
    const int rows = count_in_block<count>(a.count, block);
    if (a.pitch == 0)
      return store_contiguous<half_row, half_row, Threads>(shared.numbers, a.spectrum + block * count * half_row,
                                                           rows * half_row, thread);
    const int row = thread % count;
    if (row >= rows) return;
    Complex* const spectrum = a.spectrum + block * count + row;
    for (int bin = thread / count; bin < half_row; bin += Threads / count)
      spectrum[bin * a.pitch] = shared.numbers[row * half_row + bin];
  }

  // The bins from global memory to shared memory.
  TWIDDLE_HD void inverse(Index<0>, const BatchInverse& a, Shared& shared) {
    const int rows = count_in_block<count>(a.count, block);
    if (a.pitch == 0)
      return load_contiguous<half_row, half_row, count * half_row, Threads>(
          shared.numbers, a.spectrum + block * count * half_row, rows * half_row, thread);
    const int row = thread % count;
    if (row >= rows) return;
    const Complex* const spectrum = a.spectrum + block * count + row;
    for (int bin = thread / count; bin < half_row; bin += Threads / count)
      shared.numbers[row * half_row + bin] = spectrum[bin * a.pitch];
  }

  // The bins to registers, and step 4 backwards.
  TWIDDLE_HD void inverse(Index<1>, const BatchInverse& a, Shared& shared) {
    if (!has(a.count)) return;
    Row::load_bins(bins, lane(), row_bins(shared), 1, A);
    Row::inverse_columns(lane(), bins, roots<N>());
  }

  // Into the exchange, which takes the place of the bins.
  TWIDDLE_HD void inverse(Index<2>, const BatchInverse& a, Shared& shared) {
    if (has(a.count)) Row::store_columns(bins, lane(), exchange(shared), 1, Row::gap);
  }

  // Steps 3 to 1 backwards, to global memory.
  TWIDDLE_HD void inverse(Index<3>, const BatchInverse& a, Shared& shared) {
    if (has(a.count))
      Row::inverse_elements(exchange(shared), lane(), 1.f / N, a.target + block * count * points + row() * points);
  }

 private:
  TWIDDLE_HD int row() const { return Row::row_of(thread); }
  TWIDDLE_HD int lane() const { return thread % Row::lanes; }
  TWIDDLE_HD bool has(std::int64_t rows) const { return row() < count_in_block<count>(rows, block); }
  // Where the thread's row begins in shared memory, as an exchange or as bins.
  TWIDDLE_HD Complex* exchange(Shared& shared) const { return shared.numbers + row() * pitch; }
  TWIDDLE_HD Complex* row_bins(Shared& shared) const { return shared.numbers + row() * half_row; }
};

}  // namespace twiddle::small_fft
