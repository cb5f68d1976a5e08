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

// A block computes Rows x Columns of C. k is multiplied in steps of `depth`, each in two parts: a tensor core
// instruction processes 16 k. After a step, fp32 adders add its products to the sums. Tensor cores truncate sums, so
// that the error of longer sums would grow with their length.
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
  // On ints, for which a Divisor needs no division instruction.
  __device__ static Divided divided(int number, const Divisor& divisor) {
    const int quotient = static_cast<int>(divisor.quotient(number));
    return {quotient, number - quotient * static_cast<int>(divisor.value())};
  }
};

// A panel is one factor's part of half a step in shared memory: 128 bytes for each line of the factor, with 16 k of
// each plane. The planes are the high parts of the real and imaginary parts, then the low parts of both. With a single
// fp16 value per float, the other 16 k of the step are stored instead of the low parts. The eight 16-byte chunks of a
// line are permuted by the line's number, which avoids bank conflicts. This is the "128-byte swizzle" of wgmma's
// descriptors; ldmatrix uses the same addresses.
enum Plane { re_high, im_high, re_low, im_low };
constexpr int planes = 4, line_bytes = 128, chunk_bytes = 16;
// The panel of half a step, and in it the plane of the real parts' high values, for `Fp16PerFloat` fp16 values per
// float.
template <int Fp16PerFloat>
__device__ constexpr int panel_of(int half) {
  return Fp16PerFloat == 2 ? half : 0;
}
template <int Fp16PerFloat>
__device__ constexpr int plane_of(int half) {
  return Fp16PerFloat == 2 ? re_high : half * 2;
}
__device__ inline int chunk_at(int line, int plane, int chunk_of_plane) {
  return ((2 * plane + chunk_of_plane) ^ (line & 7)) * chunk_bytes;
}

// Factors that undo the scales of a tile's lines in one step.
template <class Tile>
struct LineScales {
  float of_rows[Tile::rows];
  alignas(8) float of_columns[Tile::columns];
};

// Writes a thread's results: neighbors in a row, added to C if `accumulate` is set.
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
