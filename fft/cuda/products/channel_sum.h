#pragma once
#include "fft/cuda/device/register_fft.h"
#include "framework/for_each.h"

// The gradient of a depthwise convolution's weights in the frequency domain: c[bin][column] is the sum over rows (tiles
// of images) of conj(a) b, each [bin][row][column]. A block sums a part of the rows of 32 columns of a bin: each of its
// warps takes every eighth row, whose numbers are contiguous, and one warp adds what they have, in order. The phases
// are functions of a thread's number, so that a test can run them on a CPU.
namespace twiddle::small_fft {

struct ChannelSumArguments {
  const Complex *a, *b;
  Complex* c;  // [part][bin][column]: with several parts of the rows, a result for each
  std::int64_t bins, rows, columns, part;
  Divisor parts, blocks_across;
  bool accumulate;  // where there is one part
  std::int64_t blocks() const { return bins * parts.value() * blocks_across.value(); }
};

struct ChannelSumBlock {
  static constexpr int columns = 32, warps = 8, threads = columns * warps;
  struct Shared {
    Complex sums[warps][columns];
  };

  TWIDDLE_HD static void sum(const ChannelSumArguments& arguments, std::int64_t block, int thread, Shared& shared) {
    const Place place(arguments, block, thread);
    const std::int64_t end = place.first_row + arguments.part;
    const std::int64_t rows = end < arguments.rows ? end : arguments.rows;
    Complex sum{0, 0};
    if (place.column < arguments.columns) {
      const std::int64_t before = place.bin * arguments.rows * arguments.columns + place.column;
      const Complex *const a = arguments.a + before, *const b = arguments.b + before;
#pragma unroll 4
      for (std::int64_t row = place.first_row + thread / columns; row < rows; row += warps) {
        const Complex left = a[row * arguments.columns], right = b[row * arguments.columns];
        sum.re += left.re * right.re, sum.im += left.re * right.im;
        sum.re += left.im * right.im, sum.im -= left.im * right.re;
      }
    }
    shared.sums[thread / columns][thread % columns] = sum;
  }

  TWIDDLE_HD static void store(const ChannelSumArguments& arguments, std::int64_t block, int thread,
                               const Shared& shared) {
    const Place place(arguments, block, thread);
    if (thread >= columns || place.column >= arguments.columns) return;
    Complex& c = arguments.c[(place.part * arguments.bins + place.bin) * arguments.columns + place.column];
    Complex sum = arguments.accumulate ? c : Complex{0, 0};
    for (int warp = 0; warp < warps; ++warp) sum = sum + shared.sums[warp][thread];
    c = sum;
  }

 private:
  struct Place {
    std::int64_t part, bin, column, first_row;
    TWIDDLE_HD Place(const ChannelSumArguments& arguments, std::int64_t block, int thread) {
      const std::int64_t slab = arguments.blocks_across.quotient(block);
      part = arguments.parts.remainder(slab), bin = arguments.parts.quotient(slab);
      column = arguments.blocks_across.remainder(block) * columns + thread % columns;
      first_row = part * arguments.part;
    }
  };
};

}  // namespace twiddle::small_fft
