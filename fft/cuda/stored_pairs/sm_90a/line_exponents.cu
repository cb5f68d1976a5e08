#include "fft/cuda/stored_pairs/line_exponents.h"

#include <cooperative_groups.h>

#include <algorithm>

#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/stored_pairs/stored_spectrum.h"
#include "framework/cuda/check.h"

namespace twiddle::stored_pairs {

namespace {

using small_fft::launch_dependent;

constexpr int lanes = 32;

// Lines use the same power of two as the largest one, unless they are smaller by orders of magnitude: then it is
// smaller by a multiple of `coarse`. A product thus scales nothing if all k are of similar size. Split fp16 has 18
// binades of headroom.
constexpr int coarse = 8;
__device__ int coarsely(int exponent, int largest) {
  return exponent == no_exponent ? no_exponent : largest - (largest - exponent) / coarse * coarse;
}

// The transform that follows these kernels depends on this order (planes/plane_launch.h).
__device__ void begin(bool dependents_early) {
  small_fft::grid_dependency_wait();
  if (dependents_early) small_fft::launch_dependents();
}

struct PlaneBounds {
  const float* values;
  float* bounds;
  std::int64_t count, row_stride, column_stride;
  Divisor columns;
  int size, window;  // elements of a plane, and the most that a tile has of them
};

// Threads lanes of a plane. The sum over a plane bounds those over its tiles, and so does their size by the largest.
// The last planes come first, so that the transform, which begins with the first ones, finds these in the L2 cache.
constexpr int bounding_threads = 256, loads_at_once = 8;
template <int Lanes>
__global__ void __launch_bounds__(bounding_threads) bounds_kernel(const PlaneBounds planes, bool dependents_early) {
  begin(dependents_early);
  const std::int64_t block = gridDim.x - 1 - blockIdx.x;
  const std::int64_t plane = (block * bounding_threads + threadIdx.x) / Lanes;
  const int lane = static_cast<int>(threadIdx.x) % Lanes;
  float sum = 0, largest = 0;
  if (plane < planes.count) {
    const std::int64_t row = planes.columns.quotient(plane), column = plane - row * planes.columns.value();
    const float* const from = planes.values + row * planes.row_stride + column * planes.column_stride;
    for (int first = lane; first < planes.size; first += loads_at_once * Lanes) {
      float values[loads_at_once];
#pragma unroll
      for (int i = 0; i < loads_at_once; ++i) values[i] = __ldg(from + min(first + i * Lanes, planes.size - 1));
#pragma unroll
      for (int i = 0; i < loads_at_once; ++i) {
        const float magnitude = first + i * Lanes < planes.size ? fabsf(values[i]) : 0;
        sum += magnitude, largest = fmaxf(largest, magnitude);
      }
    }
  }
#pragma unroll
  for (int apart = 1; apart < Lanes; apart *= 2) {
    sum += __shfl_xor_sync(~0u, sum, apart);
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, apart));
  }
  const float of_window = largest * static_cast<float>(planes.window);
  // A NaN is in the sum, and not in the largest.
  if (plane < planes.count && lane == 0) planes.bounds[plane] = of_window < sum ? of_window : sum;
}

// One cluster finds all exponents, as a second launch would take longer than these few numbers do: first its blocks
// take 32 columns at a time, and then, when the largest planes of all columns are known, its warps a row at a time.
constexpr int blocks_of_cluster = 8;  // the maximum that every GPU with clusters supports
constexpr int exponent_threads = 1024, exponent_warps = exponent_threads / lanes;
struct LineExponents {
  const float* bounds;
  int *largest_of_columns, *of_columns, *of_rows;
  int rows, columns, tiles;
};

__device__ int largest_of_warp(int value) {
#pragma unroll
  for (int apart = 1; apart < lanes; apart *= 2) value = max(value, __shfl_xor_sync(~0u, value, apart));
  return value;
}

__device__ void find_largest_of_columns(const LineExponents& lines, int block, int lane, int warp) {
  __shared__ int found[exponent_warps][lanes];
  for (int first = block * lanes; first < lines.columns; first += blocks_of_cluster * lanes) {
    const int column = first + lane;
    int exponent = no_exponent;
#pragma unroll 8
    for (int row = warp; row < lines.rows; row += exponent_warps)
      exponent = max(exponent, exponent_above(lines.bounds[std::int64_t(row) * lines.columns + column]));
    found[warp][lane] = exponent;
    __syncthreads();
    if (warp == 0) {
#pragma unroll
      for (int other = 1; other < exponent_warps; ++other) exponent = max(exponent, found[other][lane]);
      lines.largest_of_columns[column] = exponent;
    }
    __syncthreads();
  }
}

// The largest of all rows has 0, as it reaches the largest column.
__device__ int exponent_of_row(const LineExponents& lines, int row, int largest, int lane) {
  constexpr int none = 2 * no_exponent;
  int exponent = none;
#pragma unroll 4
  for (int column = lane; column < lines.columns; column += lanes) {
    const int above = exponent_above(lines.bounds[std::int64_t(row) * lines.columns + column]);
    if (above > no_exponent) exponent = max(exponent, above - coarsely(lines.largest_of_columns[column], largest));
  }
  exponent = largest_of_warp(exponent);
  return exponent == none ? no_exponent : coarsely(exponent, 0);
}

__global__ void __cluster_dims__(blocks_of_cluster) __launch_bounds__(exponent_threads)
    exponents_kernel(const LineExponents lines, bool dependents_early) {
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % lanes, warp = thread / lanes;
  begin(dependents_early);
  find_largest_of_columns(lines, block, lane, warp);
  cooperative_groups::this_cluster().sync();

  int largest = no_exponent;
  for (int column = lane; column < lines.columns; column += lanes)
    largest = max(largest, lines.largest_of_columns[column]);
  largest = largest_of_warp(largest);
  for (int row = block * exponent_warps + warp; row < lines.rows; row += blocks_of_cluster * exponent_warps) {
    const int exponent = exponent_of_row(lines, row, largest, lane);
    for (int tile = lane; tile < lines.tiles; tile += lanes)
      lines.of_rows[std::int64_t(row) * lines.tiles + tile] = exponent;
  }
  for (int column = block * exponent_threads + thread; column < lines.columns;
       column += blocks_of_cluster * exponent_threads)
    lines.of_columns[column] = coarsely(lines.largest_of_columns[column], largest);
}

template <int Lanes>
void find_bounds(Stream& stream, const PlaneBounds& planes) {
  constexpr std::int64_t each = bounding_threads / Lanes;
  launch_dependent<bounds_kernel<Lanes>>(stream, (planes.count + each - 1) / each, bounding_threads, 0, planes);
}

}  // namespace

std::size_t exponents_scratch_bytes(const Planes& planes) {
  return static_cast<std::size_t>((planes.rows + 1) * planes.columns) * sizeof(float);
}

void find_exponents(Stream& stream, const Planes& planes, const float* values, void* scratch, int* of_columns,
                    int* of_rows) {
  auto* const bounds = static_cast<float*>(scratch);
  auto* const largest_of_columns = reinterpret_cast<int*>(bounds + planes.rows * planes.columns);
  const auto rows = static_cast<int>(planes.rows), columns = static_cast<int>(planes.columns);
  const int size = planes.height * planes.width;
  const PlaneBounds all{.values = values + planes.offset,
                        .bounds = bounds,
                        .count = planes.rows * planes.columns,
                        .row_stride = planes.row_stride,
                        .column_stride = planes.column_stride,
                        .columns = Divisor(planes.columns),
                        .size = size,
                        .window = std::min(size, planes.window_h * planes.window_w)};
  if (size < lanes)
    find_bounds<1>(stream, all);
  else if (size < 16 * lanes)
    find_bounds<8>(stream, all);
  else
    find_bounds<lanes>(stream, all);
  launch_dependent<exponents_kernel>(stream, blocks_of_cluster, exponent_threads, 0,
                                     LineExponents{.bounds = bounds,
                                                   .largest_of_columns = largest_of_columns,
                                                   .of_columns = of_columns,
                                                   .of_rows = of_rows,
                                                   .rows = rows,
                                                   .columns = columns,
                                                   .tiles = static_cast<int>(planes.grid.tiles())});
}

}  // namespace twiddle::stored_pairs
