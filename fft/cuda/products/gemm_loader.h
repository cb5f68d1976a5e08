#pragma once
#include "fft/cuda/device/async_copy.h"
#include "fft/frequency_product.h"

// How the threads of a block load the operands of a product into shared memory: by async copies, coalesced in global
// memory and without bank conflicts in shared memory, whether an operand is transposed or not.
namespace twiddle::small_fft {

// What a thread loads from shared memory at once: 16 bytes, the most there are; two complex numbers or four real ones.
template <class Number>
struct alignas(16) Group {
  static constexpr int size = 16 / sizeof(Number);
  Number at[size];
};

// An operand as lines along k: rows of A, columns of B. One of the two strides is 1.
template <class Number>
struct GemmOperand {
  const Number* numbers;
  std::int64_t bin_size, group_step, line_stride, k_stride;
  int lines;
  bool along_k;    // k_stride is 1
  bool in_groups;  // line_stride is 1, and lines are aligned to groups, which are copied at once
  // From one of the numbers that a thread copies in a step to its next one, in shared memory and in global memory.
  int copy_shared;
  std::int64_t copy_numbers;
};

// A thread's share of the copies: each call copies the next Depth numbers of Lines lines, to [k][line] in shared
// memory.
template <class Number, int Lines, int Depth, int Threads>
struct GemmLoader {
  using Operand = GemmOperand<Number>;
  static constexpr int group = Group<Number>::size;
  // Padded rows, so that numbers which adjacent threads write along k lie in different banks; by a group, so that
  // groups are aligned.
  static constexpr int pitch = Lines + group;
  static constexpr int shares = (Lines * Depth + Threads - 1) / Threads;
  static constexpr int shares_in_groups = (shares + group - 1) / group;
  static_assert(Threads % Depth == 0 && Threads % Lines == 0 && (shares == 1 || Lines * Depth % Threads == 0));
  static_assert(Lines % group == 0);

  // Coalesced: adjacent threads copy adjacent numbers, along a line or across the lines, whichever stride is 1.
  static constexpr int lines_apart = Threads / Depth, k_apart = Threads / Lines, k_apart_in_groups = k_apart * group;
  static Operand operand(const void* numbers, const GroupedMatrix& matrix, std::int64_t groups, bool along_k) {
    const std::int64_t lines = along_k ? matrix.rows : matrix.columns;
    const std::int64_t line_stride = along_k ? matrix.pitch : 1, k_stride = along_k ? 1 : matrix.pitch;
    const bool in_groups =
        !along_k && lines % group == 0 && reinterpret_cast<std::uintptr_t>(numbers) % sizeof(Group<Number>) == 0;
    const int k_step = in_groups ? k_apart_in_groups : k_apart;
    return {static_cast<const Number*>(numbers),
            groups * matrix.rows * matrix.columns,
            matrix.group_step,
            line_stride,
            k_stride,
            static_cast<int>(lines),
            along_k,
            in_groups,
            along_k ? lines_apart : k_step * pitch,
            along_k ? lines_apart * line_stride : k_step * k_stride};
  }

  const Number* from;
  int to, k, wanted;  // wanted: loads inside the operand; to: -1 if the thread has no load

  TWIDDLE_HD GemmLoader(const Operand& operand, std::int64_t bin, std::int64_t of_group, int first_line, int first_k,
                        int thread) {
    const int across = operand.in_groups ? Lines / group : Lines;
    const int line = operand.along_k ? thread / Depth : thread % across * (operand.in_groups ? group : 1);
    k = operand.along_k ? thread % Depth : thread / across;
    from = operand.numbers + bin * operand.bin_size + of_group * operand.group_step +
           (first_line + line) * operand.line_stride + (first_k + k) * operand.k_stride;
    to = line < Lines && k < Depth ? k * pitch + line : -1;
    const int lines = operand.lines - first_line - line;
    wanted = lines <= 0 ? 0 : operand.along_k ? (lines + lines_apart - 1) / lines_apart : shares;
  }

  // `left`: number of k still to copy. Numbers outside of the operand become zero.
  TWIDDLE_HD void operator()(const Operand& operand, Number* shared, int left) {
    if (left < Depth && wanted > 0) {
      const int k_step = operand.in_groups ? k_apart_in_groups : k_apart;
      const int wanted_k = k < left ? (left - k + k_step - 1) / k_step : 0;
      if (!operand.along_k || wanted_k == 0) wanted = wanted_k;
    }
    if (operand.in_groups)
      copy<shares_in_groups, Group<Number>>(operand, shared);
    else
      copy<shares, Number>(operand, shared);
    from += Depth * operand.k_stride;
  }

 private:
  template <int copies, class Unit>
  TWIDDLE_HD void copy(const Operand& operand, Number* shared) const {
    constexpr bool every_thread_has_one = Lines * Depth >= Threads * static_cast<int>(sizeof(Unit) / sizeof(Number));
    if (to < 0 && !every_thread_has_one) return;
    const Number* each = from;
    shared += to;
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      async_copy(reinterpret_cast<Unit*>(shared), reinterpret_cast<const Unit*>(each), i < wanted);
      shared += operand.copy_shared, each += operand.copy_numbers;
    }
  }
};

}  // namespace twiddle::small_fft
