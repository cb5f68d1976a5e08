#pragma once
#include <cstdint>

#include "framework/device.h"

// The only place that asks which compiler is at work. TWIDDLE_HD marks a function for both devices.
#ifdef __CUDACC__
#define TWIDDLE_HD __host__ __device__
#else
#define TWIDDLE_HD
#endif

namespace twiddle {

namespace detail {

// Below this many elements a parallel region costs more than it saves (about 5 us against 1 us per 16k ReLUs,
// measured).
inline constexpr std::int64_t parallel_threshold = 16384;

template <class Functor>
void for_each_index_cpu(std::int64_t count, const Functor& functor, std::int64_t cost) {
#pragma omp parallel for schedule(static) if (count * cost > parallel_threshold)
  for (std::int64_t i = 0; i < count; ++i) functor(i);
}

// Sums are taken in sixteen float lanes, which vectorise, over stretches short enough to lose nothing, and the
// stretches in double.
inline constexpr std::int64_t reduce_lanes = 16, reduce_stretch = 512;

template <class Op>
double reduce_row_cpu(std::int64_t row, std::int64_t columns, const Op& op) {
  double total = 0;
  for (std::int64_t begin = 0; begin < columns; begin += reduce_stretch) {
    const std::int64_t end = begin + reduce_stretch < columns ? begin + reduce_stretch : columns;
    float lanes[reduce_lanes] = {};
    std::int64_t column = begin;
    for (; column + reduce_lanes <= end; column += reduce_lanes)
      for (std::int64_t lane = 0; lane < reduce_lanes; ++lane) lanes[lane] += op.term(row, column + lane);
    for (; column < end; ++column) lanes[0] += op.term(row, column);
    for (const float lane : lanes) total += lane;
  }
  return total;
}

template <class Op>
void reduce_rows_cpu(std::int64_t rows, std::int64_t columns, const Op& op) {
#pragma omp parallel for schedule(static) if (rows > 1 && rows * columns > parallel_threshold)
  for (std::int64_t row = 0; row < rows; ++row) op.store(row, reduce_row_cpu(row, columns, op));
}

#ifdef __CUDACC__
template <class Functor>
__global__ void for_each_index_kernel(std::int64_t count, Functor functor) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) functor(i);
}

void check_launch();  // throws what the last launch left in the CUDA runtime

template <class Functor>
void for_each_index_cuda(Stream& stream, std::int64_t count, const Functor& functor) {
  constexpr int block = 256;
  const std::int64_t blocks = (count + block - 1) / block;
  const int grid = static_cast<int>(blocks < 65535 ? blocks : 65535);
  for_each_index_kernel<<<grid, block, 0, static_cast<cudaStream_t>(stream.native())>>>(count, functor);
  check_launch();
}

// One block a row; the order of the sum depends on the row's length alone, so equal inputs give equal bits.
template <class Op>
__global__ void reduce_rows_kernel(std::int64_t columns, Op op) {
  __shared__ double partial[256];
  const std::int64_t row = blockIdx.x;
  double sum = 0;
  for (std::int64_t column = threadIdx.x; column < columns; column += blockDim.x) sum += op.term(row, column);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) op.store(row, partial[0]);
}

template <class Op>
void reduce_rows_cuda(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  reduce_rows_kernel<<<static_cast<unsigned>(rows), 256, 0, static_cast<cudaStream_t>(stream.native())>>>(columns, op);
  check_launch();
}
#endif

}  // namespace detail

// functor(i) for every i in [0, count), in any order and in parallel; the functor is a named struct whose call operator
// is TWIDDLE_HD. `cost` tells how many simple operations one call does, so that few heavy calls are still shared among
// the CPU's threads.
template <class Functor>
void for_each_index(Stream& stream, std::int64_t count, const Functor& functor, std::int64_t cost = 1) {
  if (count <= 0) return;
#ifdef __CUDACC__
  if (stream.device().kind == Device::Kind::cuda) return detail::for_each_index_cuda(stream, count, functor);
#endif
  static_cast<void>(stream);
  detail::for_each_index_cpu(count, functor, cost);
}

// op.store(row, sum over columns of op.term(row, column)) for every row: term gives a float, store takes the sum as a
// double. The order of a sum is fixed: the same bits whatever the thread count.
template <class Op>
void reduce_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (rows <= 0) return;
#ifdef __CUDACC__
  if (stream.device().kind == Device::Kind::cuda) return detail::reduce_rows_cuda(stream, rows, columns, op);
#endif
  static_cast<void>(stream);
  detail::reduce_rows_cpu(rows, columns, op);
}

}  // namespace twiddle
