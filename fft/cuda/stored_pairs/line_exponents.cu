#include "fft/cuda/stored_pairs/line_exponents.h"

#include <algorithm>

#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/stored_pairs/stored_spectrum.h"
#include "framework/cuda/check.h"

namespace twiddle::stored_pairs {

namespace {

using small_fft::launch_dependent;

constexpr int lanes = 32;

// Lines lack the same power of two as the largest one, unless they are smaller by orders of magnitude: then by a
// multiple of `coarse` less. So a product has nothing to do where all k are of about the same size; pairs of halves
// have 18 binades to spare.
constexpr int coarse = 8;
__device__ int coarsely(int exponent, int largest) {
  return exponent == no_exponent ? no_exponent : largest - (largest - exponent) / coarse * coarse;
}

__device__ int largest_of_block(int value, int (&shared)[lanes]) {
#pragma unroll
  for (int apart = 1; apart < lanes; apart *= 2) value = max(value, __shfl_xor_sync(~0u, value, apart));
  if (threadIdx.x % lanes == 0) shared[threadIdx.x / lanes] = value;
  __syncthreads();
  for (int warp = 0; warp < static_cast<int>(blockDim.x) / lanes; ++warp) value = max(value, shared[warp]);
  return value;
}

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
constexpr int bounding_threads = 256;
template <int Lanes>
__global__ void __launch_bounds__(bounding_threads) bounds_kernel(const PlaneBounds planes, bool dependents_early) {
  begin(dependents_early);
  const std::int64_t plane = (blockIdx.x * std::int64_t(bounding_threads) + threadIdx.x) / Lanes;
  const int lane = static_cast<int>(threadIdx.x) % Lanes;
  float sum = 0, largest = 0;
  if (plane < planes.count) {
    const std::int64_t row = planes.columns.quotient(plane), column = plane - row * planes.columns.value();
    const float* const from = planes.values + row * planes.row_stride + column * planes.column_stride;
#pragma unroll 8
    for (int i = lane; i < planes.size; i += Lanes) {
      const float magnitude = fabsf(__ldg(from + i));
      sum += magnitude, largest = fmaxf(largest, magnitude);
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

// A block has 32 columns.
constexpr int column_threads = 1024;
struct LargestOfColumns {
  const float* bounds;
  int* largest;
  int rows, columns;
};
__global__ void __launch_bounds__(column_threads) columns_kernel(const LargestOfColumns all, bool dependents_early) {
  __shared__ int found[lanes][lanes];
  const int lane = static_cast<int>(threadIdx.x) % lanes, warp = static_cast<int>(threadIdx.x) / lanes;
  const int column = static_cast<int>(blockIdx.x) * lanes + lane;
  int exponent = no_exponent;
  begin(dependents_early);
#pragma unroll 8
  for (int row = warp; row < all.rows; row += lanes)
    exponent = max(exponent, exponent_above(all.bounds[std::int64_t(row) * all.columns + column]));
  found[warp][lane] = exponent;
  __syncthreads();
  if (warp != 0) return;
  for (int other = 1; other < lanes; ++other) exponent = max(exponent, found[other][lane]);
  all.largest[column] = exponent;
}

// A block has a row, and writes its exponent for each of its tiles; the first block those of all columns, too.
constexpr int row_threads = 256;
struct RowExponents {
  const float* bounds;
  const int* largest_of_columns;
  int *of_columns, *of_rows;
  int columns, tiles;
};
__global__ void __launch_bounds__(row_threads) rows_kernel(const RowExponents rows, bool dependents_early) {
  __shared__ int found[2][lanes];
  const auto thread = static_cast<int>(threadIdx.x);
  const float* const of_row = rows.bounds + std::int64_t(blockIdx.x) * rows.columns;
  int largest = no_exponent;
  begin(dependents_early);
  for (int column = thread; column < rows.columns; column += row_threads)
    largest = max(largest, rows.largest_of_columns[column]);
  largest = largest_of_block(largest, found[0]);
  constexpr int none = 2 * no_exponent;
  int exponent = none;
  for (int column = thread; column < rows.columns; column += row_threads) {
    const int of_column = coarsely(rows.largest_of_columns[column], largest), above = exponent_above(of_row[column]);
    if (above > no_exponent) exponent = max(exponent, above - of_column);
    if (blockIdx.x == 0) rows.of_columns[column] = of_column;
  }
  exponent = largest_of_block(exponent, found[1]);
  // The largest of all rows has 0, as it reaches the largest column.
  for (int tile = thread; tile < rows.tiles; tile += row_threads)
    rows.of_rows[std::int64_t(blockIdx.x) * rows.tiles + tile] = exponent == none ? no_exponent : coarsely(exponent, 0);
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
  launch_dependent<columns_kernel>(stream, columns / lanes, column_threads, 0,
                                   LargestOfColumns{bounds, largest_of_columns, rows, columns});
  launch_dependent<rows_kernel>(
      stream, rows, row_threads, 0,
      RowExponents{bounds, largest_of_columns, of_columns, of_rows, columns, static_cast<int>(planes.grid.tiles())});
}

}  // namespace twiddle::stored_pairs
