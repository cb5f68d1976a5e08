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

// A number that many indices are divided by: a GPU takes some eighty instructions for a 64-bit division, and four for
// this. Indices below 2^31 are multiplied by a scaled inverse (Granlund, Montgomery, Division by Invariant Integers
// using Multiplication, 1994); larger ones are divided.
class Divisor {
 public:
  explicit Divisor(std::int64_t divisor) : divisor_(divisor) {
    if (divisor >= limit) return;  // 0 for all indices below the limit
    shift_ = 0;
    while ((std::int64_t(1) << shift_) < divisor) ++shift_;
    const auto above = static_cast<std::uint64_t>((std::int64_t(1) << shift_) - divisor);
    inverse_ = static_cast<std::uint32_t>((above << 32) / static_cast<std::uint64_t>(divisor) + 1);
  }

  TWIDDLE_HD std::int64_t value() const { return divisor_; }
  TWIDDLE_HD std::int64_t quotient(std::int64_t index) const {
    if (index >= limit) return index / divisor_;
    const auto small = static_cast<std::uint32_t>(index);
    const auto high = static_cast<std::uint32_t>((std::uint64_t(small) * inverse_) >> 32);
    return static_cast<std::int64_t>((high + small) >> shift_);
  }
  TWIDDLE_HD std::int64_t remainder(std::int64_t index) const { return index - quotient(index) * divisor_; }

 private:
  static constexpr std::int64_t limit = std::int64_t(1) << 31;
  std::int64_t divisor_;
  std::uint32_t inverse_ = 0, shift_ = 31;
};

// Whether the work goes to a GPU, where some functors map it to threads in another way than to the CPU's.
inline bool on_gpu(const Stream& stream) {
  return stream.device().kind == Device::Kind::cuda;
}

// Four neighbours that a GPU loads and stores at once: at a place that 16 divides.
struct alignas(16) Four {
  float at[4];
};

namespace detail {

// Below this many elements a parallel region costs more than it saves (about 5 us against 1 us per 16k ReLUs,
// measured).
inline constexpr std::int64_t parallel_threshold = 16384;

template <class Functor>
void for_each_index_cpu(std::int64_t count, const Functor& functor, std::int64_t cost) {
#pragma omp parallel for schedule(static) if (count * cost > parallel_threshold)
  for (std::int64_t i = 0; i < count; ++i) functor(i);
}

// Elementwise passes go in blocks: one call each, and straight vector code inside. The output may be one of the inputs.
inline constexpr std::int64_t map_block = 4096;

template <class Functor, class... Floats>
void map_indexed_cpu(std::int64_t count, const Functor& functor, std::int64_t cost, float* out, const Floats*... in) {
  const auto map_one_block = [=](std::int64_t block) {
    const Functor f = functor;  // one of its own, which no store into `out` can change
    const std::int64_t begin = block * map_block, end = begin + map_block < count ? begin + map_block : count;
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) out[i] = f(i, in[i]...);
  };
  for_each_index_cpu((count + map_block - 1) / map_block, map_one_block,
                     (count < map_block ? count : map_block) * cost);
}

template <class Rows, class... Floats>
void map_rows_cpu(std::int64_t rows, std::int64_t columns, const Rows& functor, std::int64_t cost, float* out,
                  const Floats*... in) {
  const auto map_one_row = [=](std::int64_t row) {
    const auto f = functor.row(row);
    const std::int64_t begin = row * columns;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column) out[begin + column] = f(column, in[begin + column]...);
  };
  for_each_index_cpu(rows, map_one_row, columns * cost);
}

template <class Functor>
struct WithoutIndex {
  Functor functor;
  template <class... Floats>
  TWIDDLE_HD float operator()(std::int64_t, Floats... values) const {
    return functor(values...);
  }
};

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

template <class Op>
void reduce_columns_cpu(std::int64_t rows, std::int64_t columns, const Op& op) {
#pragma omp parallel for schedule(static) if (columns > 1 && rows * columns > parallel_threshold)
  for (std::int64_t column = 0; column < columns; ++column) {
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) sum += op.term(row, column);
    op.store(column, sum);
  }
}

template <class Op>
void fold_rows_cpu(std::int64_t rows, std::int64_t columns, const Op& op) {
#pragma omp parallel for schedule(static) if (rows > 1 && rows * columns > parallel_threshold)
  for (std::int64_t row = 0; row < rows; ++row) {
    auto value = op.start();
    for (std::int64_t column = 0; column < columns; ++column) value = op.join(value, op.term(row, column));
    op.store(row, value);
  }
}

#ifdef __CUDACC__
void check_launch();  // throws what the last launch left in the CUDA runtime

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

template <class Rows>
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
      if (column == columns.value()) {
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

// Two loads of 16 bytes from every input are under way in each thread before it stores; what does not fill four goes
// one by one.
template <class Map, class... Floats>
__global__ void map_kernel(std::int64_t count, std::int64_t fours, Map map, float* out, const Floats*... in) {
  const std::int64_t first = std::int64_t(blockIdx.x) * (2 * map_threads) + threadIdx.x, second = first + map_threads;
  Four* const to = reinterpret_cast<Four*>(out);
  if (second < fours) {
    const Four a = map(4 * first, reinterpret_cast<const Four*>(in)[first]...);
    const Four b = map(4 * second, reinterpret_cast<const Four*>(in)[second]...);
    to[first] = a;
    to[second] = b;
  } else if (first < fours) {
    to[first] = map(4 * first, reinterpret_cast<const Four*>(in)[first]...);
  }
  const std::int64_t step = std::int64_t(gridDim.x) * map_threads;
  for (std::int64_t i = 4 * fours + std::int64_t(blockIdx.x) * map_threads + threadIdx.x; i < count; i += step)
    out[i] = map.one(i, in[i]...);
}

template <class... Pointers>
bool aligned_for_four(Pointers... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % sizeof(Four) == 0) && ...);
}

template <class Map, class... Floats>
void map_cuda(Stream& stream, std::int64_t count, const Map& map, float* out, const Floats*... in) {
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

// `lanes` threads a row; the order of the fold depends on the row's length alone, so equal inputs give equal bits.
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
#endif

}  // namespace detail

// functor(i) for every i in [0, count), in any order and in parallel; the functor is a named struct whose call operator
// is TWIDDLE_HD. `cost` tells how many simple operations one call does, so that few heavy calls are still shared among
// the CPU's threads.
template <class Functor>
void for_each_index(Stream& stream, std::int64_t count, const Functor& functor, std::int64_t cost = 1) {
  if (count <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::for_each_index_cuda(stream, count, functor);
#endif
  static_cast<void>(stream);
  detail::for_each_index_cpu(count, functor, cost);
}

// out[i] = functor(i, in[i]...): as map_elements below, for functions that also want the place.
template <class Functor, class... Floats>
void map_indexed(Stream& stream, std::int64_t count, const Functor& functor, std::int64_t cost, float* out,
                 const Floats*... in) {
  if (count <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::map_cuda(stream, count, detail::MapIndexed<Functor>{functor}, out, in...);
#endif
  static_cast<void>(stream);
  detail::map_indexed_cpu(count, functor, cost, out, in...);
}

// out[i] = functor(in[i]...) for every i in [0, count): a pure function of floats, so that a GPU moves 16 bytes at a
// time and the CPU's loop becomes vector code. `out` may be one of the inputs. `cost` as above.
template <class Functor, class... Floats>
void map_elements(Stream& stream, std::int64_t count, const Functor& functor, std::int64_t cost, float* out,
                  const Floats*... in) {
  map_indexed(stream, count, detail::WithoutIndex<Functor>{functor}, cost, out, in...);
}

// As map_elements, for a row-major matrix and functions that differ from row to row: functor.row(row) makes the row's
// own, which is called with (column, in...).
template <class Rows, class... Floats>
void map_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Rows& functor, std::int64_t cost,
              float* out, const Floats*... in) {
  if (rows <= 0 || columns <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream))
    return detail::map_cuda(stream, rows * columns, detail::MapRows<Rows>{functor, Divisor(columns)}, out, in...);
#endif
  static_cast<void>(stream);
  detail::map_rows_cpu(rows, columns, functor, cost, out, in...);
}

// op.store(row, sum over columns of op.term(row, column)) for every row: term gives a float, store takes the sum as a
// double. The order of a sum is fixed: the same bits whatever the thread count.
template <class Op>
void reduce_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (rows <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::fold_rows_cuda(stream, rows, columns, detail::SumOf<Op>{op});
#endif
  static_cast<void>(stream);
  detail::reduce_rows_cpu(rows, columns, op);
}

// As reduce_rows, down the columns: op.store(column, sum over rows of op.term(row, column)).
template <class Op>
void reduce_columns(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (columns <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::reduce_columns_cuda(stream, rows, columns, op);
#endif
  static_cast<void>(stream);
  detail::reduce_columns_cpu(rows, columns, op);
}

// As reduce_rows, with an operation of one's own: op.start() is its neutral value, op.join(a, b) joins two,
// op.term(row, column) makes one, and op.store(row, value) takes the row's.
template <class Op>
void fold_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (rows <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::fold_rows_cuda(stream, rows, columns, op);
#endif
  static_cast<void>(stream);
  detail::fold_rows_cpu(rows, columns, op);
}

}  // namespace twiddle
