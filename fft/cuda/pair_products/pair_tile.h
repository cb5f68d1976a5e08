#pragma once
#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/device/tensor_core.h"
#include "fft/cuda/pair_products/pair_scales.h"

// A factor's part of one step of a sum: some rows (for B columns, also called rows here) and 32 k, first as floats from
// memory, then as fp16 values.
namespace twiddle::pairs {

constexpr int depth = 32, threads = 256, warps = threads / 32;

// A factor in memory: one matrix of a batch. See StridedMatrix.
struct Factor {
  const float* values;
  std::int64_t stride, piece_stride;
  Divisor period;
  std::int64_t rows, matrix_step;

  TWIDDLE_HD std::int64_t place_of(std::int64_t along) const {
    const std::int64_t piece = period.quotient(along);
    return along + piece * (piece_stride - period.value());
  }
};

// Layout as in memory: [row][k] if adjacent elements differ in k, otherwise [k][row]. Groups of four floats in a line
// are permuted by the line's number. This avoids bank conflicts, both for threads with one row each and for threads
// with one k each.
template <bool AlongK, int Rows>
struct Floats {
  static constexpr int rows = Rows;
  alignas(16) float at[Rows * depth];
  TWIDDLE_HD static int place(int row, int k) {
    if constexpr (AlongK)
      return row * depth + (((k >> 2) ^ (row & 7)) << 2 | (k & 3));
    else
      return k * Rows + (((row >> 2) ^ (k & 7)) << 2 | (row & 3));
  }
};

// As tensor cores read them (tensor_core.h).
template <int Rows>
struct alignas(512) Fp16Tile {
  __half high[Rows * depth], low[Rows * depth];
};

// Copies a factor's part of each step: `Width` adjacent floats at once, four or, where they are not aligned, one.
template <bool AlongK, int Width, int Rows>
class StepCopy {
 public:
  __device__ StepCopy(const Factor& factor, std::int64_t matrix, std::int64_t first_row, int thread)
      : factor_(factor), along_(thread % across * Width), other_(thread / across) {
    const std::int64_t row = first_row + (AlongK ? other_ : along_), left = factor.rows - row;
    rows_left_ = static_cast<int>(left < Rows ? left : Rows);
    from_ = factor.values + matrix * factor.matrix_step;
    if constexpr (AlongK)
      from_ += row * factor.stride;
    else
      from_ += (left > 0 ? factor.place_of(row) : 0) + other_ * factor.stride;
  }

  // Zeros where there is no such row, and from last_k on.
  __device__ void copy(int first_k, int last_k, Floats<AlongK, Rows>& to) const {
    if constexpr (AlongK) {
      const int k = first_k + along_;
      const float* const from = from_ + factor_.place_of(k);
#pragma unroll
      for (int i = 0; i < Rows; i += apart)
        put(to.at + to.place(other_ + i, along_), from + i * factor_.stride, k < last_k && i < rows_left_);
    } else {
      const float* const from = from_ + first_k * factor_.stride;
#pragma unroll
      for (int i = 0; i < depth; i += apart)
        put(to.at + to.place(along_, other_ + i), from + i * factor_.stride,
            first_k + other_ + i < last_k && rows_left_ > 0);
    }
  }

 private:
  static constexpr int across = (AlongK ? depth : Rows) / Width, apart = threads / across;

  __device__ static void put(float* to, const float* from, bool wanted) {
    if constexpr (Width == 4)
      small_fft::async_copy(reinterpret_cast<Four*>(to), reinterpret_cast<const Four*>(from), wanted);
    else
      small_fft::async_copy(to, from, wanted);
  }

  const Factor& factor_;
  const float* from_;
  int along_, other_;  // of the thread's first float in the part
  int rows_left_;
};

// Adds the exponents of column k = lane, in the warp's part of the rows.
template <bool AlongK, int Rows>
__device__ void add_exponents(const Floats<AlongK, Rows>& part, int warp, int lane, ColumnExponent& column) {
  constexpr int each = Rows / warps;
#pragma unroll 4
  for (int i = 0; i < each; ++i) column.add(part.at[part.place(warp * each + i, lane)]);
}

template <int Count>
struct alignas(Count * sizeof(float)) Adjacent {
  float at[Count];
};

template <int Count>
struct alignas(16) Pairs {
  __half2 at[Count];
};

// What two threads have of a row, in split_rows' order: either 16 adjacent k or four of each eight.
template <bool AlongK>
__device__ void store_for_registers(const __half2 (&pairs)[8], int row, int share, __half* fp16) {
  if constexpr (AlongK) {
#pragma unroll
    for (int odd = 0; odd < 2; ++odd)
      *reinterpret_cast<Pairs<4>*>(fp16 + small_fft::place_of_piece(row, 2 * share + odd)) = {
          pairs[odd], pairs[2 + odd], pairs[4 + odd], pairs[6 + odd]};
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int place = small_fft::place_of_piece(row, i / 4 * 2 + i % 2) + (i / 2 % 2 * 2 + share) * 2;
      *reinterpret_cast<__half2*>(fp16 + place) = pairs[i];
    }
  }
}

// Order of a row's k: plain, or, within each 16, wgmma's order of a factor in registers whose threads have four
// adjacent k: 4 i and 4 i + 1 have indices 2 i and 2 i + 1, and the other two are eight further.
enum class Order : std::uint8_t { plain, of_registers };

// Splits all rows, scaled by scales[k] and then per row, which back[row] undoes. Several adjacent threads share a row;
// their k are chosen to avoid bank conflicts: 8 or 16 consecutive k if rows are adjacent along k, otherwise a part of
// each eight.
template <Order order = Order::plain, bool AlongK, int Rows>
__device__ void split_rows(const Floats<AlongK, Rows>& part, int thread, const float* scales, Fp16Tile<Rows>& fp16,
                           float* back) {
  constexpr int sharing = threads / Rows, count = depth / sharing;
  static_assert(sharing == 2 || sharing == 4);
  // The run of adjacent k that a thread has of each eight, and how many of them lie side by side.
  constexpr int run = AlongK ? count : 8 / sharing, at_once = AlongK ? 4 : 1;
  const int row = thread / sharing, share = thread % sharing;
  float values[count], largest = 0;
#pragma unroll
  for (int i = 0; i < count; i += at_once) {
    const int k = AlongK ? share * count + i : i / run * 8 + share * run + i % run;
    Adjacent<at_once> from = *reinterpret_cast<const Adjacent<at_once>*>(part.at + part.place(row, k));
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      values[i + j] = from.at[j] * scales[k + j];
      largest = fmaxf(largest, fabsf(values[i + j]));
    }
  }
#pragma unroll
  for (int apart = 1; apart < sharing; apart *= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, apart));
  const int exponent = scale_of_row(largest);
  const float scale = power_of_two(exponent);
  __half2 high[count / 2], low[count / 2];
#pragma unroll
  for (int i = 0; i < count / 2; ++i) {
    const float first = values[2 * i] * scale, second = values[2 * i + 1] * scale;
    high[i] = __floats2half2_rn(first, second);
    low[i] = __floats2half2_rn(first - __low2float(high[i]), second - __high2float(high[i]));
  }
  if constexpr (order == Order::of_registers) {
    store_for_registers<AlongK>(high, row, share, fp16.high);
    store_for_registers<AlongK>(low, row, share, fp16.low);
  } else {
    constexpr int stored = run < 8 ? run : 8;  // fp16 values per store
    using Piece = std::conditional_t<stored == 8, uint4, std::conditional_t<stored == 4, uint2, unsigned>>;
#pragma unroll
    for (int i = 0; i < count; i += stored) {
      const int k = AlongK ? share * count + i : i / run * 8 + share * run;
      const int place = small_fft::place_of_piece(row, k / 8) + k % 8;
      *reinterpret_cast<Piece*>(fp16.high + place) = *reinterpret_cast<const Piece*>(high + i / 2);
      *reinterpret_cast<Piece*>(fp16.low + place) = *reinterpret_cast<const Piece*>(low + i / 2);
    }
  }
  if (share == 0) back[row] = power_of_two(-exponent);
}

}  // namespace twiddle::pairs
