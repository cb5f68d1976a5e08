#pragma once
#include "fft/cuda/device/async_copy.h"

// How the threads of a block load the operands of a product into shared memory: by async copies, coalesced in global
// memory and without bank conflicts in shared memory, whether an operand is transposed or not.
namespace twiddle::small_fft {

// An operand as lines along k: rows of A, columns of B. One of the two strides is 1.
template <class Number>
struct GemmOperand {
  const Number* numbers;
  std::int64_t bin_size, line_stride, k_stride;
  int lines;
  bool along_k;  // k_stride is 1
  // From one of the numbers that a thread copies in a step to its next one, in shared memory and in global memory.
  int copy_shared;
  std::int64_t copy_numbers;
};

// A thread's share of the copies: each call copies the next Depth numbers of Lines lines, to [k][line] in shared
// memory.
template <class Number, int Lines, int Depth, int Threads>
struct GemmLoader {
  using Operand = GemmOperand<Number>;
  // Padded rows, so that numbers which adjacent threads write along k lie in different banks.
  static constexpr int pitch = Lines + 2;
  static constexpr int shares = (Lines * Depth + Threads - 1) / Threads;
  static_assert(Threads % Depth == 0 && Threads % Lines == 0 && (shares == 1 || Lines * Depth % Threads == 0));

  // Coalesced: adjacent threads copy adjacent numbers, along a line or across the lines, whichever stride is 1.
  static constexpr int lines_apart = Threads / Depth, k_apart = Threads / Lines;
  static Operand operand(const void* numbers, std::int64_t lines, std::int64_t k, bool along_k) {
    const std::int64_t line_stride = along_k ? k : 1, k_stride = along_k ? 1 : lines;
    return {static_cast<const Number*>(numbers),
            lines * k,
            line_stride,
            k_stride,
            static_cast<int>(lines),
            along_k,
            along_k ? lines_apart : k_apart * pitch,
            along_k ? lines_apart * line_stride : k_apart * k_stride};
  }

  const Number* from;
  int to, k, wanted;  // wanted: how many of its shares lie inside the operand; to: -1 where the thread has no share

  TWIDDLE_HD GemmLoader(const Operand& operand, std::int64_t bin, int first_line, int first_k, int thread) {
    const int line = operand.along_k ? thread / Depth : thread % Lines;
    k = operand.along_k ? thread % Depth : thread / Lines;
    from = operand.numbers + bin * operand.bin_size + (first_line + line) * operand.line_stride +
           (first_k + k) * operand.k_stride;
    to = line < Lines && k < Depth ? k * pitch + line : -1;
    const int lines = operand.lines - first_line - line;
    wanted = lines <= 0 ? 0 : operand.along_k ? (lines + lines_apart - 1) / lines_apart : shares;
  }

  // `left`: how many k are still to be copied. What is outside of the operand becomes zero.
  TWIDDLE_HD void operator()(const Operand& operand, Number* shared, int left) {
    if (left < Depth && wanted > 0) {
      const int wanted_k = k < left ? (left - k + k_apart - 1) / k_apart : 0;
      if (!operand.along_k || wanted_k == 0) wanted = wanted_k;
    }
    if (to >= 0 || Lines * Depth >= Threads) {
      const Number* each = from;
      shared += to;
#pragma unroll
      for (int i = 0; i < shares; ++i) {
        async_copy(shared, each, i < wanted);
        shared += operand.copy_shared, each += operand.copy_numbers;
      }
    }
    from += Depth * operand.k_stride;
  }
};

}  // namespace twiddle::small_fft
