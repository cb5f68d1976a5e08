#include "fft/cuda/complex_pairs/balance.h"

#include "fft/cuda/complex_pairs/tuned_on_h100.h"
#include "fft/cuda/device/register_fft.h"
#include "fft/cuda/pair_products/pair_scales.h"
#include "framework/cuda/check.h"

namespace twiddle::complex_pairs {

using pairs::ColumnExponent;
using small_fft::Complex;
using small_fft::ComplexPair;

namespace {

// Beyond that, numbers far from the mean might overflow.
constexpr int most_balance = 64;

constexpr int lanes = 32, warps = 8;

struct Columns {  // of A, in pairs
  const ComplexPair* numbers;
  int rows, pairs, blocks_a_bin;
  int2* powers;
};

struct TwoExponents {
  ColumnExponent first, second;
  __device__ void add(const int4& other) {
    first.add(ColumnExponent{other.x, other.y}), second.add(ColumnExponent{other.z, other.w});
  }
  __device__ operator int4() const { return {first.sum, first.count, second.sum, second.count}; }
  __device__ bool lacks_one() const { return first.count == 0 || second.count == 0; }
};

__device__ float largest_part(Complex number) {
  return fmaxf(fabsf(number.re), fabsf(number.im));
}

// A warp's share of each step-th row; `from`: two columns' numbers of the first row.
__device__ TwoExponents sum_rows(const ComplexPair* from, const Columns& columns, int warp, int step) {
  TwoExponents sums;
#pragma unroll 4
  for (int row = warp * step; row < columns.rows; row += warps * step) {
    const ComplexPair numbers = from[row * std::int64_t(columns.pairs)];
    sums.first.add(largest_part(numbers.first)), sums.second.add(largest_part(numbers.second));
  }
  return sums;
}

__device__ int power_bits(const ColumnExponent& column) {
  return __float_as_int(pairs::power_of_two(-pairs::limited(column.mean(), most_balance)));
}

// A block processes 64 columns of a bin. A column with only zeros in the sample is read in all rows: the channel may be
// dead, or nearly so.
__global__ void __launch_bounds__(lanes* warps) balance_kernel(const Columns columns) {
  __shared__ int4 found[warps][lanes];
  const int block = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x) % lanes;
  const int bin = block / columns.blocks_a_bin, warp = static_cast<int>(threadIdx.x) / lanes;
  const int pair = block % columns.blocks_a_bin * lanes + lane;
  const bool is_one = pair < columns.pairs;
  const ComplexPair* const from = columns.numbers + std::int64_t(bin) * columns.rows * columns.pairs + pair;
  TwoExponents sums;
  for (int step = columns.rows / sampled_rows | 1;; step = 1) {  // odd, so that each tile of an image is sampled
    found[warp][lane] = is_one ? sum_rows(from, columns, warp, step) : TwoExponents{};
    __syncthreads();
    sums = {};
    for (int i = 0; i < warps; ++i) sums.add(found[i][lane]);
    if (!__syncthreads_or(is_one && sums.lacks_one()) || step == 1) break;
  }
  if (warp == 0 && is_one)
    columns.powers[std::int64_t(bin) * columns.pairs + pair] = {power_bits(sums.first), power_bits(sums.second)};
}

}  // namespace

std::size_t balance_bytes(const FrequencyGemm& gemm) {
  return static_cast<std::size_t>(gemm.bins * gemm.groups * gemm.k) * sizeof(int);
}

const int* find_balance(Stream& stream, const FrequencyGemm& gemm, const void* a, void* scratch) {
  const int pairs = static_cast<int>(gemm.groups * gemm.k / 2), blocks_a_bin = (pairs + lanes - 1) / lanes;
  const Columns columns{static_cast<const ComplexPair*>(a), static_cast<int>(gemm.m), pairs, blocks_a_bin,
                        static_cast<int2*>(scratch)};
  balance_kernel<<<static_cast<unsigned>(gemm.bins * blocks_a_bin), lanes * warps, 0,
                   twiddle::detail::native(stream)>>>(columns);
  twiddle::detail::check_launch();
  return static_cast<const int*>(scratch);
}

}  // namespace twiddle::complex_pairs
