#pragma once
#include <cmath>

#include "fft/cuda/pair_products/few_rows_launch.h"
#include "fft/cuda/pair_products/ring.h"

// C = A B of few rows: B's columns are wgmma's rows, with fp16 values in registers, and A's rows are its columns. In
// each step, a thread has columns 2 (lane / 4) and the next of its warp's 16, and four of each 16 k, from 4 (lane % 4)
// on.
namespace twiddle::pairs {

// B's floats of a step and 128 columns, as threads read them.
template <bool AlongK>
struct FloatsOfFewRows {
  static constexpr int columns = columns_of_few_rows;
  alignas(128) float at[columns * depth];

  // Offset of the first of four adjacent floats: along k [column % 2][k / 16][column / 2][k % 16], otherwise
  // [k][column], with fours permuted to avoid bank conflicts.
  __device__ static int place(int column, int k) {
    if constexpr (AlongK)
      return ((column % 2 * 2 + k / 16) * columns / 2 + column / 2) * 16 + k % 16;
    else
      return k * columns + (((column / 4) ^ (k / 4 % 4 * 2)) * 4 + column % 4);
  }
  // Columns `first` and the next, k from 4 `share` on of each 16.
  __device__ void load(int first, int share, float (&values)[2][8]) const {
    if constexpr (AlongK) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float4 four = *reinterpret_cast<const float4*>(at + place(first + i / 2, i % 2 * 16 + share * 4));
        float* const to = values[i / 2] + i % 2 * 4;
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
      }
    } else {
      const float* const from = at + place(first, share * 4);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float2 two = *reinterpret_cast<const float2*>(from + (i / 4 * 16 + i % 4) * columns);
        values[0][i] = two.x, values[1][i] = two.y;
      }
    }
  }
};

// Copies the steps of a tile's columns of B, four floats at a time, eight times a thread.
template <bool AlongK>
class ColumnsOfB {
 public:
  using To = FloatsOfFewRows<AlongK>;
  __device__ ColumnsOfB(const Factor& b, int k, std::int64_t first_column, int thread)
      : stride_(b.stride),
        column_(AlongK ? thread / 8 : thread % 32 * 4),
        first_k_(AlongK ? thread % 8 * 4 : thread / 32),
        k_(k),
        left_(static_cast<int>(min(b.rows - first_column, std::int64_t(To::columns))) - column_) {
    const std::int64_t column = first_column + column_;
    from_ = b.values + first_k_ * (AlongK ? 1 : stride_);
    if (left_ > 0) from_ += AlongK ? column * stride_ : b.place_of(column);
  }
  __device__ void copy(int step, To& to) const {
    const int k_left = k_ - step * depth - first_k_;
    const float* const from = from_ + step * depth * (AlongK ? 1 : stride_);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      constexpr int columns_apart = 16, k_apart = 4;
      if constexpr (AlongK)
        put(to.at + To::place(column_ + i * columns_apart, first_k_), from + i * columns_apart * stride_,
            i * columns_apart < left_ && k_left > 0);
      else
        put(to.at + To::place(column_, first_k_ + i * k_apart), from + i * k_apart * stride_,
            left_ > 0 && i * k_apart < k_left);
    }
  }

 private:
  __device__ static void put(float* to, const float* from, bool wanted) {
    small_fft::async_copy_once(reinterpret_cast<Four*>(to), reinterpret_cast<const Four*>(from), wanted);
  }
  std::int64_t stride_;
  int column_, first_k_, k_, left_;
  const float* from_;
};

// A thread's part of a step of B, and the factors that undo its columns' scales.
struct SplitShare {
  small_fft::Fragment high[2], low[2];  // of each 16 k
  float back[2];
};

// Scaled by scales[k] and then each column as a whole; four adjacent threads share two columns.
__device__ inline void split_share(float (&values)[2][8], const float (&scales)[8], SplitShare& share) {
  float largest[2] = {};
#pragma unroll
  for (int column = 0; column < 2; ++column)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      values[column][i] *= scales[i];
      largest[column] = fmaxf(largest[column], fabsf(values[column][i]));
    }
#pragma unroll
  for (int apart = 1; apart < 4; apart *= 2)
#pragma unroll
    for (float& most : largest) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, apart));
#pragma unroll
  for (int column = 0; column < 2; ++column) {
    const int exponent = scale_of_row(largest[column]);
    const float scale = power_of_two(exponent);
    share.back[column] = power_of_two(-exponent);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float first = values[column][2 * i] * scale, second = values[column][2 * i + 1] * scale;
      const __half2 high = __floats2half2_rn(first, second);
      const __half2 low = __floats2half2_rn(first - __low2float(high), second - __high2float(high));
      share.high[i / 2].at[i % 2 * 2 + column] = reinterpret_cast<const std::uint32_t&>(high);
      share.low[i / 2].at[i % 2 * 2 + column] = reinterpret_cast<const std::uint32_t&>(low);
    }
  }
}

constexpr int stages_of_few_rows = 6;
template <bool AlongK>
struct SharedOfFewRows {
  struct Stage {
    SplitPart<rows_of_a> a;
    alignas(128) float scales[depth];
    FloatsOfFewRows<AlongK> b;
  } stage[stages_of_few_rows];
  Ring<stages_of_few_rows> ring;
};

// `Rows` of A a tile: 64, where it has no more, or 128.
template <bool AlongK, int Rows>
class FewRowsProduct {
 public:
  using Shared = SharedOfFewRows<AlongK>;
  __device__ FewRowsProduct(const FewRows& g, Shared& shared)
      : g_(g),
        shared_(shared),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        left_(min(g.part, g.all_steps - static_cast<int>(blockIdx.x) * g.part)),
        tile_(static_cast<int>(blockIdx.x) * g.part / g.steps),
        step_(static_cast<int>(blockIdx.x) * g.part % g.steps) {}

  __device__ void run() {
    shared_.ring.begin(copying_threads + 1, static_cast<int>(threadIdx.x));
    if (warp_ < multiplying_warps) {
      small_fft::take_registers<registers_of_multiplying>();
      multiply();
    } else {
      small_fft::give_registers<registers_of_copying>();
      copy(static_cast<int>(threadIdx.x) - multiplying_threads);
    }
  }

 private:
  static constexpr int half_of_rows = Rows / 2, sums = half_of_rows / 2;

  __device__ std::int64_t first_row() const { return std::int64_t(tile_ % g_.tiles_m) * rows_of_a; }
  __device__ std::int64_t first_column() const { return std::int64_t(tile_ / g_.tiles_m) * columns_of_few_rows; }

  __device__ void copy(int thread) {
    while (left_ > 0) {
      const ColumnsOfB<AlongK> columns(g_.b, g_.k, first_column(), thread);
      const int end = min(g_.steps, step_ + left_);
      left_ -= end - step_;
      for (; step_ < end; ++step_, turn_.advance()) {
        shared_.ring.is_free[turn_.stage].wait(turn_.phase ^ 1);
        columns.copy(step_, shared_.stage[turn_.stage].b);
        shared_.ring.is_there[turn_.stage].arrive_when_copied();
        if (thread == 0) copy_a();
      }
      step_ = 0, ++tile_;
    }
  }
  __device__ void copy_a() {
    constexpr int bytes_of_fp16 = Rows * depth * sizeof(__half), bytes_of_back = Rows * sizeof(float);
    const SplitPart<rows_of_a>& from = g_.a[std::int64_t(tile_ % g_.tiles_m) * g_.steps + step_];
    typename Shared::Stage& to = shared_.stage[turn_.stage];
    small_fft::Barrier& there = shared_.ring.is_there[turn_.stage];
    there.expect(2 * bytes_of_fp16 + bytes_of_back + sizeof to.scales);
    there.load(to.a.fp16.high, from.fp16.high, bytes_of_fp16);
    there.load(to.a.fp16.low, from.fp16.low, bytes_of_fp16);
    there.load(to.a.back, from.back, bytes_of_back);
    there.load(to.scales, g_.scales + step_ * depth, sizeof to.scales);
  }

  __device__ void multiply() {
    SplitShare shares[2];
    split(shares[0]);
    begin<0>(shares[0]);
    begin<1>(shares[0]);
#pragma unroll 1
    for (; left_ > 2; left_ -= 2) {
      pass(shares[0], shares[1]);
      pass(shares[1], shares[0]);
    }
    if (left_ == 2) {
      pass(shares[0], shares[1]);
      finish(shares[1]);
    } else {
      finish(shares[0]);
    }
  }
  // From a step to the next one: while tensor cores multiply with one half of A's rows, the other half's products are
  // added, and the next step is split while they multiply with both.
  __device__ void pass(const SplitShare& now, SplitShare& next) {
    const int stage = turn_.stage;
    turn_.advance();
    split(next);
    small_fft::wait_for_wgmma<1>();
    add<0>(stage, now);
    begin<0>(next);
    small_fft::wait_for_wgmma<1>();
    add<1>(stage, now);
    shared_.ring.release(stage, lane_);
    begin<1>(next);
    if (++step_ == g_.steps) store();
  }
  __device__ void finish(const SplitShare& last) {
    small_fft::wait_for_wgmma<1>();
    add<0>(turn_.stage, last);
    small_fft::wait_for_wgmma<0>();
    add<1>(turn_.stage, last);
    store();
  }

  __device__ void split(SplitShare& share) {
    const typename Shared::Stage& stage = shared_.stage[turn_.stage];
    shared_.ring.is_there[turn_.stage].wait(turn_.phase);
    float values[2][8], scales[8];
    stage.b.load(warp_ * 16 + lane_ / 4 * 2, lane_ % 4, values);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<float4*>(scales + 4 * i) =
          *reinterpret_cast<const float4*>(stage.scales + i * 16 + lane_ % 4 * 4);
    split_share(values, scales, share);
  }

  template <int Half>
  __device__ void begin(const SplitShare& b) {
    const __half* const a = shared_.stage[turn_.stage].a.fp16.high + Half * half_of_rows * depth;
    const std::uint64_t high = small_fft::matrix_for_wgmma(a);
    constexpr int to_low = small_fft::steps_for_wgmma(rows_of_a * depth), next = small_fft::steps_for_wgmma(16);
    small_fft::begin_wgmma();
    multiply_split<false>(b.high[0], b.low[0], high, to_low, products_[Half]);
    multiply_split<true>(b.high[1], b.low[1], high + next, to_low, products_[Half]);
    small_fft::commit_wgmma();
  }
  template <int Half>
  __device__ void add(int stage, const SplitShare& b) {
    complete(products_[Half]);
    const float* const back_a = shared_.stage[stage].a.back + Half * half_of_rows + lane_ % 4 * 2;
#pragma unroll
    for (int j = 0; j < sums / 4; ++j) {
      const float2 back = *reinterpret_cast<const float2*>(back_a + 8 * j);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums_[Half][4 * j + i] =
            fmaf(products_[Half][4 * j + i] * b.back[i / 2], i % 2 == 0 ? back.x : back.y, sums_[Half][4 * j + i]);
    }
    complete(sums_[Half]);
  }

  // The tile's sums, or this block's part of them, and begins the next tile. Eight lanes have 16 adjacent columns.
  __device__ void store() {
    const int first_block = g_.first_block(tile_);
    const bool whole = first_block == g_.last_block(tile_);
    const std::int64_t n = g_.b.rows, column = first_column() + warp_ * 16 + lane_ / 4 * 2;
    const std::int64_t row = first_row() + lane_ % 4 * 2;
    float* const c = (whole ? g_.c : g_.results + (static_cast<int>(blockIdx.x) - first_block) * g_.m * n) + column;
    const bool biased = whole && g_.bias != nullptr && column < n;
    const float bias[2] = {biased ? g_.bias[column] : 0, biased ? g_.bias[column + 1] : 0};
    const float least = whole && g_.relu ? 0 : -INFINITY;
#pragma unroll
    for (int i = 0; i < Rows / 4; ++i) {
      float* const at = sums_[i / (Rows / 8)] + i / 2 % (Rows / 16) * 4 + i % 2;
      const float first = at[0] + bias[0], second = at[2] + bias[1];
      const float2 both = {first < least ? least : first, second < least ? least : second};
      const std::int64_t m = row + i / 2 * 8 + i % 2;
      if (m < g_.m && column < n) reinterpret_cast<float2*>(c)[m * n / 2] = both;  // n is even
      at[0] = at[2] = 0;
    }
    step_ = 0, ++tile_;
  }

  const FewRows& g_;
  Shared& shared_;
  int warp_, lane_, left_, tile_, step_;  // steps that are left to this block
  Turn<stages_of_few_rows> turn_;
  float products_[2][sums], sums_[2][sums] = {};  // of each half of A's rows
};

template <bool AlongK, int Rows>
__global__ void __launch_bounds__(threads_of_both, 1) few_rows_kernel(const FewRows g) {
  extern __shared__ SplitPart<rows_of_a> memory[];
  FewRowsProduct<AlongK, Rows>(g, *reinterpret_cast<SharedOfFewRows<AlongK>*>(memory)).run();
}

}  // namespace twiddle::pairs
