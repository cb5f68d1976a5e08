#include "fft/cuda/tensor_products/pair_scales.h"

#include "fft/cuda/device/register_fft.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle::half_pairs {

using small_fft::Complex;

namespace {

// A factor: its numbers, [bin][plane], and what is found of them.
struct Factor {
  const Complex* numbers;
  int* bounds;  // the bits of floats, which order as integers do where none is negative
  std::int64_t planes;
};
struct Factors {
  Factor of[2];
  std::int64_t bins, bins_of_a_block;
};

constexpr int bound_threads = 256;

// The order of maxima does not change their result, so that atomics give equal bits in equal runs. NaN is left out.
__global__ void __launch_bounds__(bound_threads) bounds_kernel(const Factors factors) {
  const Factor factor = factors.of[blockIdx.z];
  const std::int64_t plane = std::int64_t(blockIdx.x) * bound_threads + threadIdx.x;
  if (plane >= factor.planes) return;
  const std::int64_t first = blockIdx.y * factors.bins_of_a_block;
  const std::int64_t end =
      first + factors.bins_of_a_block < factors.bins ? first + factors.bins_of_a_block : factors.bins;
  float most = 0;
#pragma unroll 8
  for (std::int64_t bin = first; bin < end; ++bin) {
    const Complex number = factor.numbers[bin * factor.planes + plane];
    most = fmaxf(most, fmaxf(fabsf(number.re), fabsf(number.im)));
  }
  atomicMax(factor.bounds + plane, __float_as_int(most));
}

// The bounds of a factor as lines (rows of A, columns of B) along k. One of the two strides is 1.
struct BoundsOfLines {
  const int* bounds;
  std::int64_t group_step, line_stride, k_stride;
  __device__ int exponent(std::int64_t group, int line, int k) const {
    return exponent_of(__int_as_float(bounds[group * group_step + line * line_stride + k * k_stride]));
  }
};
struct ScaleArguments {
  BoundsOfLines a, b;
  int *left, *right, *along;
  int m, n, k;
};

constexpr int warps = 32, lanes = 32;  // of a block
using Table = int[warps][lanes + 1];

// For each warp of a block the largest value(i, j) over all j, where i is first_i + the warp's number. Where numbers of
// neighbouring i lie beside each other, neighbouring threads read these.
template <class Value>
__device__ int largest(int first_i, int count_i, int count_j, bool j_is_contiguous, Table& table, const Value& value) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int i = first_i + (j_is_contiguous ? y : x);
  int most = no_exponent;
  if (i < count_i)
#pragma unroll 4
    for (int j = j_is_contiguous ? x : y; j < count_j; j += lanes) most = max(most, value(i, j));
  __syncthreads();
  (j_is_contiguous ? table[y][x] : table[x][y]) = most;
  __syncthreads();
  most = table[y][x];
#pragma unroll
  for (int apart = lanes / 2; apart > 0; apart /= 2) most = max(most, __shfl_xor_sync(~0u, most, apart));
  return most;
}

__global__ void __launch_bounds__(warps* lanes) along_kernel(const ScaleArguments arguments) {
  __shared__ Table table;
  const int first = static_cast<int>(blockIdx.x) * warps, k = first + static_cast<int>(threadIdx.y);
  const std::int64_t group = blockIdx.y;
  const auto exponent_of_k = [&](const BoundsOfLines& lines, int count) {
    return largest(first, arguments.k, count, lines.line_stride == 1, table,
                   [&](int i, int j) { return lines.exponent(group, j, i); });
  };
  const int of_a = exponent_of_k(arguments.a, arguments.m), of_b = exponent_of_k(arguments.b, arguments.n);
  if (threadIdx.x == 0 && k < arguments.k)
    arguments.along[group * arguments.k + k] = exponent_bits(balance(of_a, of_b));
}

__global__ void __launch_bounds__(warps* lanes) lines_kernel(const ScaleArguments arguments) {
  __shared__ Table table;
  const bool right = blockIdx.z == 1;
  const BoundsOfLines& lines = right ? arguments.b : arguments.a;
  const int count = right ? arguments.n : arguments.m;
  const int first = static_cast<int>(blockIdx.x) * warps, line = first + static_cast<int>(threadIdx.y);
  const std::int64_t group = blockIdx.y;
  if (first >= count) return;
  const int* const along = arguments.along + group * arguments.k;
  const int exponent = largest(first, count, arguments.k, lines.k_stride == 1, table, [&](int i, int j) {
    const int scale = along[j] / (1 << 23);
    return lines.exponent(group, i, j) + (right ? -scale : scale);
  });
  if (threadIdx.x == 0 && line < count)
    (right ? arguments.right : arguments.left)[group * count + line] = line_bits(scale_of_line(exponent));
}

std::int64_t planes_of(const FrequencyGemm& gemm, const GroupedMatrix& matrix) {
  return gemm.groups * matrix.rows * matrix.columns;
}

unsigned blocks_of(std::int64_t count, std::int64_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

// As many blocks as fill a GPU's threads about twice.
constexpr std::int64_t wanted_threads = 1 << 19;

void find_bounds(cudaStream_t stream, Factors factors) {
  const std::int64_t planes = std::max(factors.of[0].planes, factors.of[1].planes);
  const std::int64_t parts = std::clamp<std::int64_t>(wanted_threads / planes, 1, factors.bins);
  factors.bins_of_a_block = (factors.bins + parts - 1) / parts;
  const dim3 grid(blocks_of(planes, bound_threads), blocks_of(factors.bins, factors.bins_of_a_block), 2);
  bounds_kernel<<<grid, bound_threads, 0, stream>>>(factors);
  twiddle::detail::check_launch();
}

}  // namespace

std::size_t scales_bytes(const FrequencyGemm& gemm) {
  const std::int64_t planes = planes_of(gemm, gemm.a()) + planes_of(gemm, gemm.b());
  return static_cast<std::size_t>(planes + gemm.groups * (gemm.m + gemm.n + gemm.k) + read_behind) * sizeof(int);
}

Scales find_scales(Stream& stream, const FrequencyGemm& gemm, const void* a, const void* b, void* scratch) {
  const cudaStream_t native = twiddle::detail::native(stream);
  const std::int64_t planes_a = planes_of(gemm, gemm.a()), planes_b = planes_of(gemm, gemm.b());
  int* const bounds = static_cast<int*>(scratch);
  check(cudaMemsetAsync(bounds, 0, static_cast<std::size_t>(planes_a + planes_b) * sizeof(int), native));
  find_bounds(native, {{{static_cast<const Complex*>(a), bounds, planes_a},
                        {static_cast<const Complex*>(b), bounds + planes_a, planes_b}},
                       gemm.bins,
                       0});
  const auto lines = [](const int* of, const GroupedMatrix& matrix, bool along_k) -> BoundsOfLines {
    return {of, matrix.group_step, along_k ? matrix.pitch : 1, along_k ? 1 : matrix.pitch};
  };
  int* const along = bounds + planes_a + planes_b;
  int* const left = along + gemm.groups * gemm.k;
  int* const right = left + gemm.groups * gemm.m;
  const ScaleArguments arguments{lines(bounds, gemm.a(), !gemm.transpose_a),
                                 lines(bounds + planes_a, gemm.b(), gemm.transpose_b),
                                 left,
                                 right,
                                 along,
                                 static_cast<int>(gemm.m),
                                 static_cast<int>(gemm.n),
                                 static_cast<int>(gemm.k)};
  const dim3 block(lanes, warps);
  const auto groups = static_cast<unsigned>(gemm.groups);
  along_kernel<<<dim3(blocks_of(gemm.k, warps), groups), block, 0, native>>>(arguments);
  twiddle::detail::check_launch();
  lines_kernel<<<dim3(blocks_of(std::max(gemm.m, gemm.n), warps), groups, 2), block, 0, native>>>(arguments);
  twiddle::detail::check_launch();
  return {left, right, along};
}

}  // namespace twiddle::half_pairs
