#pragma once
#include "fft/cuda/device/async_copy.h"

// How the threads of a block bring the factors of a product to shared memory.
namespace twiddle::small_fft {

// A factor seen as lines along k: rows of A, columns of B. One of the two strides is 1.
struct GemmFactor {
  const Complex* numbers;
  std::int64_t bin_size, line_stride, k_stride;
  int lines;
  bool along_k;  // k_stride is 1
  // From one of the numbers that a thread copies in a step to the next one, in shared memory and here.
  int copy_shared;
  std::int64_t copy_numbers;
};

// A thread's share of copying one factor: the next Depth numbers of Lines lines, again and again. Shared memory has
// them as [k][line].
template <int Lines, int Depth, int Threads>
struct FactorCopy {
  // Lines that follow each other along k are spread over all banks.
  static constexpr int pitch = Lines + 2;
  static constexpr int shares = (Lines * Depth + Threads - 1) / Threads;
  static_assert(Threads % Depth == 0 && Threads % Lines == 0 && (shares == 1 || Lines * Depth % Threads == 0));

  // Neighbouring threads copy neighbouring numbers: those of a line, or those of lines that lie side by side.
  static constexpr int lines_apart = Threads / Depth, k_apart = Threads / Lines;
  static GemmFactor factor(const void* numbers, std::int64_t lines, std::int64_t k, bool along_k) {
    const std::int64_t line_stride = along_k ? k : 1, k_stride = along_k ? 1 : lines;
    return {static_cast<const Complex*>(numbers),
            lines * k,
            line_stride,
            k_stride,
            static_cast<int>(lines),
            along_k,
            along_k ? lines_apart : k_apart * pitch,
            along_k ? lines_apart * line_stride : k_apart * k_stride};
  }

  const Complex* from;
  int to, k, wanted;  // wanted: how many of its shares lie in the factor; to: -1 where the thread has no share

  TWIDDLE_HD FactorCopy(const GemmFactor& factor, std::int64_t bin, int first_line, int first_k, int thread) {
    const int line = factor.along_k ? thread / Depth : thread % Lines;
    k = factor.along_k ? thread % Depth : thread / Lines;
    from = factor.numbers + bin * factor.bin_size + (first_line + line) * factor.line_stride +
           (first_k + k) * factor.k_stride;
    to = line < Lines && k < Depth ? k * pitch + line : -1;
    const int lines = factor.lines - first_line - line;
    wanted = lines <= 0 ? 0 : factor.along_k ? (lines + lines_apart - 1) / lines_apart : shares;
  }

  // `left`: how many k there are still.
  TWIDDLE_HD void operator()(const GemmFactor& factor, Complex* shared, int left) {
    if (left < Depth && wanted > 0) {
      const int wanted_k = k < left ? (left - k + k_apart - 1) / k_apart : 0;
      if (!factor.along_k || wanted_k == 0) wanted = wanted_k;
    }
    if (to >= 0 || Lines * Depth >= Threads) {
      const Complex* each = from;
      shared += to;
#pragma unroll
      for (int i = 0; i < shares; ++i) {
        copy_beside(shared, each, i < wanted);
        shared += factor.copy_shared, each += factor.copy_numbers;
      }
    }
    from += Depth * factor.k_stride;
  }
};

}  // namespace twiddle::small_fft
