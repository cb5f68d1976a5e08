#pragma once
#include <cstdint>
#include <source_location>

#include "framework/for_each.h"

// How framework/for_each.h does its work on a GPU: a part of it, which nothing else includes.
namespace twiddle::detail {

// Throws what the last launch left in the CUDA runtime, with the line of who launched.
void check_launch(const std::source_location& where = std::source_location::current());

inline cudaStream_t native(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native());
}

inline unsigned blocks_for(std::int64_t work, std::int64_t per_block) {
  constexpr std::int64_t most = 0x7fffffff;
  const std::int64_t blocks = (work + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

template <class Functor>
__global__ void for_each_index_kernel(std::int64_t count, Functor functor) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) functor(i);
}

template <class Functor>
void for_each_index_cuda(Stream& stream, std::int64_t count, const Functor& functor) {
  constexpr int block = 256;
  for_each_index_kernel<<<blocks_for(count, block), block, 0, native(stream)>>>(count, functor);
  check_launch();
}

// How a map takes four neighbours, the first at index i.
template <class Functor>
struct MapIndexed {
  Functor functor;
  template <class... Fours>
  __device__ Four operator()(std::int64_t i, const Fours&... in) const {
    return {functor(i, in.at[0]...), functor(i + 1, in.at[1]...), functor(i + 2, in.at[2]...),
            functor(i + 3, in.at[3]...)};
  }
  template <class... Floats>
  __device__ float one(std::int64_t i, Floats... in) const {
    return functor(i, in...);
  }
};

// `in_fours`: four neighbours lie in one row, as in rows of a multiple of four.
template <class Rows, bool in_fours>
struct MapRows {
  Rows functor;
  Divisor columns;
  template <class... Fours>
  __device__ Four operator()(std::int64_t i, const Fours&... in) const {
    std::int64_t row = columns.quotient(i), column = i - row * columns.value();
    auto f = functor.row(row);
    Four out;
#pragma unroll
    for (int k = 0; k < 4; ++k, ++column) {
      if (!in_fours && column == columns.value()) {
        column = 0;
        f = functor.row(++row);
      }
      out.at[k] = f(column, in.at[k]...);
    }
    return out;
  }
  template <class... Floats>
  __device__ float one(std::int64_t i, Floats... in) const {
    const std::int64_t row = columns.quotient(i);
    return functor.row(row)(i - row * columns.value(), in...);
  }
};

constexpr int map_threads = 256;

// Two loads of four elements from every input are in flight in each thread before it stores; what does not fill four
// goes one by one.
template <class T>
__device__ Four load_four(const T* from, std::int64_t index) {
  const FourOf<T> four = reinterpret_cast<const FourOf<T>*>(from)[index];
  return {to_float(four.at[0]), to_float(four.at[1]), to_float(four.at[2]), to_float(four.at[3])};
}

template <class T>
__device__ void store_four(T* to, std::int64_t index, const Four& four) {
  reinterpret_cast<FourOf<T>*>(to)[index] = {from_float<T>(four.at[0]), from_float<T>(four.at[1]),
                                             from_float<T>(four.at[2]), from_float<T>(four.at[3])};
}

// What is left of it after a store.
template <class T>
__device__ Four rounded_to(const Four& four) {
  return {to_float(from_float<T>(four.at[0])), to_float(from_float<T>(four.at[1])), to_float(from_float<T>(four.at[2])),
          to_float(from_float<T>(four.at[3]))};
}

template <class Map, class Out, class... In>
__global__ void map_kernel(std::int64_t count, std::int64_t fours, Map map, Out* out, const In*... in) {
  const std::int64_t first = std::int64_t(blockIdx.x) * (2 * map_threads) + threadIdx.x, second = first + map_threads;
  if (second < fours) {
    const Four a = map(4 * first, load_four(in, first)...);
    const Four b = map(4 * second, load_four(in, second)...);
    store_four(out, first, a);
    store_four(out, second, b);
  } else if (first < fours) {
    store_four(out, first, map(4 * first, load_four(in, first)...));
  }
  const std::int64_t step = std::int64_t(gridDim.x) * map_threads;
  for (std::int64_t i = 4 * fours + std::int64_t(blockIdx.x) * map_threads + threadIdx.x; i < count; i += step)
    out[i] = from_float<Out>(map.one(i, to_float(in[i])...));
}

template <class... T>
bool aligned_for_four(const T*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % sizeof(FourOf<T>) == 0) && ...);
}

template <class Map, class Out, class... In>
void map_cuda(Stream& stream, std::int64_t count, const Map& map, Out* out, const In*... in) {
  const std::int64_t fours = aligned_for_four(out, in...) ? count / 4 : 0;
  map_kernel<<<blocks_for((count + 3) / 4, 2 * map_threads), map_threads, 0, native(stream)>>>(count, fours, map, out,
                                                                                               in...);
  check_launch();
}

template <class Op>
struct SumOf {
  Op op;
  __device__ double start() const { return 0; }
  __device__ double term(std::int64_t row, std::int64_t column) const { return op.term(row, column); }
  __device__ double join(double a, double b) const { return a + b; }
  __device__ void store(std::int64_t row, double sum) const { op.store(row, sum); }
};

// Uses `lanes` threads per row. The order of the fold depends only on the row's length: results are bitwise
// reproducible.
constexpr int fold_threads = 256;

template <int lanes, class Op>
__global__ void fold_rows_kernel(std::int64_t rows, std::int64_t columns, Op op) {
  using Value = decltype(op.start());
  __shared__ Value partial[fold_threads];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t row = std::int64_t(blockIdx.x) * (fold_threads / lanes) + threadIdx.x / lanes;
  Value value = op.start();
  if (row < rows) {
#pragma unroll 4
    for (std::int64_t column = lane; column < columns; column += lanes) value = op.join(value, op.term(row, column));
  }
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (lane < half) partial[threadIdx.x] = op.join(partial[threadIdx.x], partial[threadIdx.x + half]);
    __syncthreads();
  }
  if (lane == 0 && row < rows) op.store(row, partial[threadIdx.x]);
}

template <class Op>
void fold_rows_cuda(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  constexpr int warp = 32;
  if (columns <= 16 * warp)
    fold_rows_kernel<warp>
        <<<blocks_for(rows, fold_threads / warp), fold_threads, 0, native(stream)>>>(rows, columns, op);
  else
    fold_rows_kernel<fold_threads><<<blocks_for(rows, 1), fold_threads, 0, native(stream)>>>(rows, columns, op);
  check_launch();
}

constexpr int sum_threads = 256, sum_warps = sum_threads / 32;

__device__ inline double warp_sum(double sum) {  // the first lane has the full sum
  for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
  return sum;
}

// Maps rows and sums them; a block processes `rows_each` short rows. They are mapped as one contiguous, 16-byte aligned
// range and stored in shared memory; then each warp sums a row. A thread issues all loads before its first store: the
// compiler must assume that they may alias.
constexpr int sum_fours = 4, sum_piece = 4 * sum_fours * sum_threads;

template <class Functor, class Out, class... In>
__global__ void map_and_sum_short_rows_kernel(std::int64_t rows, int columns, int rows_each, Functor functor,
                                              Out* __restrict__ out, float* __restrict__ sums,
                                              const In* __restrict__... in) {
  __shared__ Four staged[sum_fours * sum_threads];
  float* const results = reinterpret_cast<float*>(staged);
  const MapIndexed<WithoutIndex<Functor>> map{{functor}};
  const std::int64_t first_row = std::int64_t(blockIdx.x) * rows_each, begin = first_row * columns;
  const int rows_here = rows - first_row < rows_each ? static_cast<int>(rows - first_row) : rows_each;
  const int count = rows_here * columns, fours = count / 4, thread = static_cast<int>(threadIdx.x);
  if (fours > 0) {
    // Threads past the end load the last four once more: loads without a condition go all at once, ahead of what
    // is done with them.
    Four values[sum_fours];
#pragma unroll
    for (int k = 0; k < sum_fours; ++k) {
      const int i = min(thread + k * sum_threads, fours - 1);
      values[k] = rounded_to<Out>(map(0, load_four(in + begin, i)...));
    }
#pragma unroll
    for (int k = 0; k < sum_fours; ++k) {
      const int i = thread + k * sum_threads;
      if (i >= fours) continue;
      store_four(out + begin, i, values[k]);
      staged[i] = values[k];
    }
  }
  if (const int i = 4 * fours + thread; i < count) {
    const Out result = from_float<Out>(map.one(0, to_float(in[begin + i])...));
    out[begin + i] = result;
    results[i] = to_float(result);
  }
  __syncthreads();
  for (int row = thread / 32; row < rows_here; row += sum_warps) {
    float sum = 0;
    for (int column = thread % 32; column < columns; column += 32) sum += results[row * columns + column];
    const double total = warp_sum(sum);
    if (thread % 32 == 0) sums[first_row + row] = static_cast<float>(total);
  }
}

// The same for rows of any length and alignment, one block per row.
constexpr int sum_batch = 8;

template <class Functor, class Out, class... In>
__global__ void map_and_sum_long_rows_kernel(std::int64_t columns, Functor functor, Out* __restrict__ out,
                                             float* __restrict__ sums, const In* __restrict__... in) {
  __shared__ double partial[sum_warps];
  const std::int64_t begin = std::int64_t(blockIdx.x) * columns;
  float sum = 0;
  for (std::int64_t first = threadIdx.x; first < columns; first += sum_batch * sum_threads) {
    Out values[sum_batch];
#pragma unroll
    for (int k = 0; k < sum_batch; ++k) {
      const std::int64_t column = first + k * sum_threads;
      if (column < columns) values[k] = from_float<Out>(functor(to_float(in[begin + column])...));
    }
#pragma unroll
    for (int k = 0; k < sum_batch; ++k) {
      const std::int64_t column = first + k * sum_threads;
      if (column >= columns) continue;
      out[begin + column] = values[k];
      sum += to_float(values[k]);
    }
  }
  double total = warp_sum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int other = 1; other < sum_warps; ++other) total += partial[other];
  sums[blockIdx.x] = static_cast<float>(total);
}

template <class Functor, class Out, class... In>
void map_and_sum_rows_cuda(Stream& stream, std::int64_t rows, std::int64_t columns, const Functor& functor, Out* out,
                           float* sums, const In*... in) {
  constexpr int longest = sum_piece / 4;  // four of them, so that each piece is 16-byte aligned
  if (columns > 0 && columns <= longest && aligned_for_four(out, in...)) {
    const int rows_each = 4 * (longest / static_cast<int>(columns));
    map_and_sum_short_rows_kernel<<<blocks_for(rows, rows_each), sum_threads, 0, native(stream)>>>(
        rows, static_cast<int>(columns), rows_each, functor, out, sums, in...);
  } else {
    map_and_sum_long_rows_kernel<<<blocks_for(rows, 1), sum_threads, 0, native(stream)>>>(columns, functor, out, sums,
                                                                                          in...);
  }
  check_launch();
}

// A block sums 32 neighbouring columns, every thread each sixteenth row of one.
constexpr int column_lanes = 32, row_lanes = 16;

template <class Op>
__global__ void reduce_columns_kernel(std::int64_t rows, std::int64_t columns, Op op) {
  __shared__ double partial[row_lanes][column_lanes];
  const std::int64_t column = std::int64_t(blockIdx.x) * column_lanes + threadIdx.x;
  double sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.y; row < rows; row += row_lanes) sum += op.term(row, column);
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int other = 1; other < row_lanes; ++other) sum += partial[other][threadIdx.x];
  op.store(column, sum);
}

template <class Op>
void reduce_columns_cuda(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  reduce_columns_kernel<<<blocks_for(columns, column_lanes), dim3(column_lanes, row_lanes), 0, native(stream)>>>(
      rows, columns, op);
  check_launch();
}

}  // namespace twiddle::detail
