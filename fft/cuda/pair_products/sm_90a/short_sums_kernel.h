#pragma once
#include "fft/cuda/pair_products/ring.h"
#include "fft/cuda/pair_products/short_sums_launch.h"

// C = A B of short sums: A's fp16 values of a tile, for all k, stay in registers while the block iterates over B's
// tiles.
namespace twiddle::pairs {

constexpr int stages_of_short_sums = 16;
struct SharedOfShortSums {
  SplitPart<rows_of_b> stage[stages_of_short_sums];
  Ring<stages_of_short_sums> ring;
};

template <int Steps>
class ShortSumsProduct {
 public:
  using Shared = SharedOfShortSums;
  __device__ ShortSumsProduct(const ShortSums& g, Shared& shared)
      : g_(g),
        shared_(shared),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        tile_(static_cast<int>(blockIdx.x) * g.part),
        last_(min(tile_ + g.part, g.tiles)) {}

  __device__ void run() {
    shared_.ring.begin(1, static_cast<int>(threadIdx.x));
    if (warp_ < multiplying_warps) {
      small_fft::take_registers<registers_of_multiplying>();
      multiply();
    } else {
      small_fft::give_registers<registers_of_copying>();
      if (threadIdx.x == multiplying_threads) copy_b();
    }
  }

 private:
  static constexpr int sums = rows_of_b / 2;

  __device__ void copy_b() {
    for (; tile_ < last_; ++tile_) {
      const SplitPart<rows_of_b>* const from = g_.b + std::int64_t(tile_ % g_.tiles_n) * Steps;
      for (int step = 0; step < Steps; ++step, turn_.advance()) {
        small_fft::Barrier& there = shared_.ring.is_there[turn_.stage];
        shared_.ring.is_free[turn_.stage].wait(turn_.phase ^ 1);
        there.expect(sizeof *from);
        there.load(&shared_.stage[turn_.stage], from + step, sizeof *from);
      }
    }
  }

  __device__ void multiply() {
    while (tile_ < last_) {
      const int row = tile_ / g_.tiles_n, end = min(last_, (row + 1) * g_.tiles_n);
      load_a(row);
#pragma unroll 1
      for (; tile_ < end; ++tile_) multiply_tile(row, tile_ - row * g_.tiles_n);
    }
  }
  // While one step's products are added, tensor cores multiply the next.
  __device__ void multiply_tile(int tile_m, int tile_n) {
    float sum[sums] = {}, products[2][sums];
    Turn<stages_of_short_sums> begun = turn_;
    begin(0, begun, products[0]);
#pragma unroll
    for (int step = 0; step < Steps; ++step, turn_.advance()) {
      if (step + 1 < Steps) {
        begun.advance();
        begin(step + 1, begun, products[(step + 1) % 2]);
        small_fft::wait_for_wgmma<1>();
      } else {
        small_fft::wait_for_wgmma<0>();
      }
      add(step, products[step % 2], sum);
      shared_.ring.release(turn_.stage, lane_);
    }
    store(tile_m, tile_n, sum);
  }

  __device__ void load_a(int tile_m) {
    const SplitPart<rows_of_a>* const from = g_.a + std::int64_t(tile_m) * Steps;
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
      const SplitPart<rows_of_a>& part = from[step];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int place = small_fft::place_of_piece(row() + i % 2 * 8, i / 2) + lane_ % 4 * 2;
        high_[step][i / 4].at[i % 4] = *reinterpret_cast<const std::uint32_t*>(part.fp16.high + place);
        low_[step][i / 4].at[i % 4] = *reinterpret_cast<const std::uint32_t*>(part.fp16.low + place);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) back_[step][i] = part.back[row() + 8 * i];
    }
  }

  __device__ void begin(int step, const Turn<stages_of_short_sums>& turn, float (&products)[sums]) {
    shared_.ring.is_there[turn.stage].wait(turn.phase);
    const std::uint64_t high = small_fft::matrix_for_wgmma(shared_.stage[turn.stage].fp16.high);
    constexpr int to_low = small_fft::steps_for_wgmma(rows_of_b * depth), next = small_fft::steps_for_wgmma(16);
    small_fft::begin_wgmma();
    multiply_split<false>(high_[step][0], low_[step][0], high, to_low, products);
    multiply_split<true>(high_[step][1], low_[step][1], high + next, to_low, products);
    small_fft::commit_wgmma();
  }
  __device__ void add(int step, float (&products)[sums], float (&sum)[sums]) {
    complete(products);
    const float* const back_b = shared_.stage[turn_.stage].back + lane_ % 4 * 2;
#pragma unroll
    for (int j = 0; j < sums / 4; ++j) {
      const float2 back = *reinterpret_cast<const float2*>(back_b + 8 * j);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum[4 * j + i] = fmaf(products[4 * j + i] * back_[step][i / 2], i % 2 == 0 ? back.x : back.y, sum[4 * j + i]);
    }
    complete(sum);
  }

  __device__ void store(int tile_m, int tile_n, const float (&sum)[sums]) const {
    const std::int64_t m = std::int64_t(tile_m) * rows_of_a + row();
    const std::int64_t n = std::int64_t(tile_n) * rows_of_b + lane_ % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (m + 8 * i >= g_.m) return;
      float* const c = g_.c + (m + 8 * i) * g_.c_stride + n;
#pragma unroll
      for (int j = 0; j < sums / 4; ++j)
        if (n + 8 * j < g_.n) *reinterpret_cast<float2*>(c + 8 * j) = {sum[4 * j + 2 * i], sum[4 * j + 2 * i + 1]};
    }
  }

  __device__ int row() const {
    return warp_ * 16 + lane_ / 4;
  }  // and the one 8 below

  const ShortSums& g_;
  Shared& shared_;
  int warp_, lane_, tile_, last_;
  Turn<stages_of_short_sums> turn_;
  small_fft::Fragment high_[Steps][2], low_[Steps][2];  // the thread's of A, of each 16 k
  float back_[Steps][2];
};

template <int Steps>
__global__ void __launch_bounds__(threads_of_both, 1) short_sums_kernel(const ShortSums g) {
  extern __shared__ SplitPart<rows_of_a> memory[];
  ShortSumsProduct<Steps>(g, *reinterpret_cast<SharedOfShortSums*>(memory)).run();
}

}  // namespace twiddle::pairs
