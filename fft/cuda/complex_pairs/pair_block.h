#pragma once
#include "fft/cuda/device/register_fft.h"
#include "fft/frequency_product.h"

// What the kernels of this folder have in common: which tile of C is computed when, and where its factors lie.
namespace twiddle::complex_pairs {

using small_fft::Complex;
using small_fft::ComplexPair;

// A factor as lines along k: rows of A, columns of B. One of the strides of line and k is 1, the other is `pitch`.
struct PairOperand {
  const Complex* numbers;
  std::int64_t bin_size, group_step, pitch;
  int lines;
};

struct PairArguments {
  PairOperand a, b;
  const int* balance;  // of each bin, group and k, the bits of a float; null: 1
  Complex* c;          // with several parts of k, a spectrum for each
  std::int64_t bins, c_group_step, c_pitch;
  int m, n, k, part;  // part: the length of a part of k, a multiple of `depth`
  Divisor groups, parts, tiles_down, tiles_across;
  int tiles;
  bool accumulate, aligned;  // aligned: pairs of C's columns are
};

// Rows x Columns of C a block. k is multiplied in steps of `depth`, each in two halves: an instruction of the tensor
// cores takes 16 of k. After a step the sums are added to others by fp32 adders, as the tensor cores truncate what they
// add, so that errors of longer sums would grow with their length.
constexpr int depth = 32, half_depth = 16;

template <int Rows, int Columns>
struct PairTile {
  static constexpr int rows = Rows, columns = Columns;
};

// A tile of C and the part of k that is summed in it.
struct TilePlace {
  int bin, group, part;
  int row, column, first_k, k;  // k: the length of the part

  template <class Tile>
  __device__ static TilePlace of(const PairArguments& arguments, int tile) {
    const auto [strip, across] = divided(tile, arguments.tiles_across);
    const auto [slab, down] = divided(strip, arguments.tiles_down);
    const auto [matrix, part] = divided(slab, arguments.parts);
    const auto [bin, group] = divided(matrix, arguments.groups);
    const int first_k = part * arguments.part;
    return {bin,
            group,
            part,
            down * Tile::rows,
            across * Tile::columns,
            first_k,
            min(arguments.k - first_k, arguments.part)};
  }

 private:
  struct Divided {
    int quotient, remainder;
  };
  // Of ints, for which a Divisor never has to divide.
  __device__ static Divided divided(int number, const Divisor& divisor) {
    const int quotient = static_cast<int>(divisor.quotient(number));
    return {quotient, number - quotient * static_cast<int>(divisor.value())};
  }
};

// A panel is what shared memory holds of one factor for half a step: a line of 128 bytes for each line of the factor,
// with 16 of k of each plane: high halves of the real and of the imaginary parts, then the low halves of both. Where a
// float is one half, the high one, the other 16 k of the step lie in place of the low halves. The eight chunks of 16
// bytes of a line change places with the line's number, so that accesses do not meet in the same banks: that is the
// "128-byte swizzle" of wgmma's descriptors, and ldmatrix follows it by addresses.
enum Plane { re_high, im_high, re_low, im_low };
constexpr int planes = 4, line_bytes = 128, chunk_bytes = 16;
// Where half a step lies, with so many halves a float: in which panel, and in which plane the real parts' high halves.
template <int Halves>
__device__ constexpr int panel_of(int half) {
  return Halves == 2 ? half : 0;
}
template <int Halves>
__device__ constexpr int plane_of(int half) {
  return Halves == 2 ? re_high : half * 2;
}
__device__ inline int chunk_at(int line, int plane, int chunk_of_plane) {
  return ((2 * plane + chunk_of_plane) ^ (line & 7)) * chunk_bytes;
}

// What takes the scales of a tile's lines back, for the step at hand.
template <class Tile>
struct LineScales {
  float of_rows[Tile::rows];
  alignas(8) float of_columns[Tile::columns];
};

// Writes results of a thread: neighbours in a row, added to C where that is wanted.
class ResultStore {
 public:
  __device__ ResultStore(const PairArguments& arguments, const TilePlace& place)
      : arguments_(arguments),
        c_(arguments.c +
           (place.part * arguments.bins + place.bin) * (arguments.groups.value() * arguments.m * arguments.n) +
           place.group * arguments.c_group_step) {}

  __device__ void operator()(int row, int column, Complex first, Complex second) const {
    if (row >= arguments_.m || column >= arguments_.n) return;
    Complex* const to = c_ + row * arguments_.c_pitch + column;
    const bool both = column + 1 < arguments_.n;
    if (both && arguments_.aligned) {
      auto* const pair = reinterpret_cast<ComplexPair*>(to);
      const ComplexPair before = arguments_.accumulate ? *pair : ComplexPair{};
      *pair = {before.first + first, before.second + second};
    } else {
      to[0] = (arguments_.accumulate ? to[0] : Complex{}) + first;
      if (both) to[1] = (arguments_.accumulate ? to[1] : Complex{}) + second;
    }
  }

 private:
  const PairArguments& arguments_;
  Complex* c_;
};

}  // namespace twiddle::complex_pairs
