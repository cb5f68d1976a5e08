#pragma once
#include <cstdint>

#include "fft/cuda/tensor_core/panel.h"
#include "framework/divisor.h"

// How a product of 16-bit matrices is split into tiles, parts and steps, and which boxes of A and B a step needs.
namespace twiddle::tensor_core {

constexpr int native_rows = 128, native_depth = 64;  // of a tile of C; k of a step

template <bool AlongK, int Lines>
using NativePanel = Panel<AlongK ? Layout::k_major_128 : Layout::mn_major_128, Lines, native_depth, 1>;

struct NativeShape {
  int m, n, steps, steps_a_part;
  int a_matrices, b_matrices;  // 1: one for each matrix of C, or for each term of a sum over matrices; 0: one for all
  Divisor steps_a_matrix;      // `steps` unless C is a sum over matrices
  Divisor parts, tiles_down, tiles_across;
  int tiles;
};

// A tile of C, and the part of k that is summed in it. Tiles with the same rows follow each other, so that they share
// A.
template <int Columns>
struct NativeWork {
  int matrix, part, row, column, first_step, steps;
  TWIDDLE_HD NativeWork(const NativeShape& shape, int tile) {
    const int strip = quotient(tile, shape.tiles_across), slab = quotient(strip, shape.tiles_down);
    row = (strip - slab * static_cast<int>(shape.tiles_down.value())) * native_rows;
    column = (tile - strip * static_cast<int>(shape.tiles_across.value())) * Columns;
    matrix = quotient(slab, shape.parts);
    part = slab - matrix * static_cast<int>(shape.parts.value());
    first_step = part * shape.steps_a_part;
    const int left = shape.steps - first_step;
    steps = shape.steps_a_part < left ? shape.steps_a_part : left;
  }

 private:
  TWIDDLE_HD static int quotient(int number, const Divisor& divisor) {
    return static_cast<int>(divisor.quotient(number));
  }
};

// Where a step lies in A and B.
struct NativeStep {
  int matrix, k;
  TWIDDLE_HD NativeStep(const NativeShape& shape, int first_matrix, int step) {
    const auto later = static_cast<int>(shape.steps_a_matrix.quotient(step));
    matrix = first_matrix + later;
    k = (step - later * static_cast<int>(shape.steps_a_matrix.value())) * native_depth;
  }
};

// The copy engine fills a panel by boxes of rows of 64 numbers, which are adjacent in the matrix: all lines, or all k
// of a group of lines. `to`: bytes from the panel's beginning.
template <class P>
struct NativeBoxes {
  static constexpr int width = 64, height = P::k_major ? P::lines : P::depth;
  static constexpr int count = P::k_major ? 1 : P::lines / P::group;
  struct Box {
    int x, y, to;
  };
  TWIDDLE_HD static constexpr Box box(int i, int line, int k) {
    if constexpr (P::k_major) return {k, line, 0};
    return {line + i * P::group, k, i * P::group_bytes};
  }
};

// Which element of 64 rows a thread of the warpgroup has as its i-th sum.
struct SumPlace {
  int row, column;
};
TWIDDLE_HD constexpr SumPlace place_of_sum(int thread, int i) {
  return {thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, thread % 4 * 2 + i / 4 * 8 + i % 2};
}

}  // namespace twiddle::tensor_core
