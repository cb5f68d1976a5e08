#pragma once
#include <cstdint>

#include "framework/device.h"
#include "framework/divisor.h"
#include "framework/dtype.h"
#include "framework/host_device.h"

namespace twiddle {

namespace detail {

[[noreturn]] void refuse_gpu(const Stream& stream, const char* loop);

// Compiled by g++, for_each is a host loop and rejects CUDA streams. `loop` is the caller's __PRETTY_FUNCTION__, which
// names its functor.
inline void require_host(const Stream& stream, const char* loop) {
  if (on_gpu(stream)) refuse_gpu(stream, loop);
}

}  // namespace detail

// Four adjacent elements that a GPU loads and stores at once.
template <class T>
struct alignas(4 * sizeof(T)) FourOf {
  T at[4];
};
using Four = FourOf<float>;

}  // namespace twiddle

#include "framework/cpu/for_each_loops.h"
#ifdef __CUDACC__
#include "framework/cuda/for_each_kernels.h"
#endif

namespace twiddle {

// functor(i) for every i in [0, count), in any order and in parallel; the functor is a named struct whose call operator
// is TWIDDLE_HD. `cost` is the number of simple operations per call, so that a few expensive calls are still
// distributed over the CPU's threads.
template <class Functor>
void for_each_index(Stream& stream, std::int64_t count, const Functor& functor, std::int64_t cost = 1) {
  if (count <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::for_each_index_cuda(stream, count, functor);
#endif
  detail::require_host(stream, __PRETTY_FUNCTION__);
  detail::for_each_index_cpu(count, functor, cost);
}

// out[i] = functor(i, in[i]...): like map_elements below, for functions that also need the index. Elements of out and
// in may be float, Bf16 or Half; the functor takes and returns floats, and each result is rounded once.
template <class Functor, class Out, class... In>
void map_indexed(Stream& stream, std::int64_t count, const Functor& functor, std::int64_t cost, Out* out,
                 const In*... in) {
  if (count <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::map_cuda(stream, count, detail::MapIndexed<Functor>{functor}, out, in...);
#endif
  detail::require_host(stream, __PRETTY_FUNCTION__);
  detail::map_indexed_cpu(count, functor, cost, out, in...);
}

// out[i] = functor(in[i]...) for every i in [0, count): a pure function of floats, so that a GPU moves 16 bytes at a
// time and the CPU's loop becomes vector code. `out` may be one of the inputs. `cost` as above.
template <class Functor, class Out, class... In>
void map_elements(Stream& stream, std::int64_t count, const Functor& functor, std::int64_t cost, Out* out,
                  const In*... in) {
  map_indexed(stream, count, detail::WithoutIndex<Functor>{functor}, cost, out, in...);
}

// As map_elements, for a row-major matrix and functions that differ from row to row: functor.row(row) makes the row's
// own, which is called with (column, in...).
template <class Rows, class Out, class... In>
void map_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Rows& functor, std::int64_t cost, Out* out,
              const In*... in) {
  if (rows <= 0 || columns <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) {
    const Divisor by(columns);
    if (columns % 4 == 0)
      return detail::map_cuda(stream, rows * columns, detail::MapRows<Rows, true>{functor, by}, out, in...);
    return detail::map_cuda(stream, rows * columns, detail::MapRows<Rows, false>{functor, by}, out, in...);
  }
#endif
  detail::require_host(stream, __PRETTY_FUNCTION__);
  detail::map_rows_cpu(rows, columns, functor, cost, out, in...);
}

// op.store(row, sum over columns of op.term(row, column)) for every row: term gives a float, store takes the sum as a
// double. The order of a sum is fixed, so results are bitwise identical for any thread count.
template <class Op>
void reduce_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (rows <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::fold_rows_cuda(stream, rows, columns, detail::SumOf<Op>{op});
#endif
  detail::require_host(stream, __PRETTY_FUNCTION__);
  detail::reduce_rows_cpu(rows, columns, op);
}

// out[i] = functor(in[i]...) over a row-major matrix, and sums[row] of what was written: one pass for both. `out` is
// none of the inputs. The order of a sum is fixed, as above.
template <class Functor, class Out, class... In>
void map_and_sum_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Functor& functor, Out* out,
                      float* sums, const In*... in) {
  if (rows <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::map_and_sum_rows_cuda(stream, rows, columns, functor, out, sums, in...);
#endif
  detail::require_host(stream, __PRETTY_FUNCTION__);
  detail::map_and_sum_rows_cpu(rows, columns, functor, out, sums, in...);
}

// As reduce_rows, down the columns: op.store(column, sum over rows of op.term(row, column)).
template <class Op>
void reduce_columns(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (columns <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::reduce_columns_cuda(stream, rows, columns, op);
#endif
  detail::require_host(stream, __PRETTY_FUNCTION__);
  detail::reduce_columns_cpu(rows, columns, op);
}

// Like reduce_rows, with a custom operation: op.start() returns its neutral value, op.join(a, b) combines two values,
// op.term(row, column) returns one, and op.store(row, value) receives the row's result.
template <class Op>
void fold_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (rows <= 0) return;
#ifdef __CUDACC__
  if (on_gpu(stream)) return detail::fold_rows_cuda(stream, rows, columns, op);
#endif
  detail::require_host(stream, __PRETTY_FUNCTION__);
  detail::fold_rows_cpu(rows, columns, op);
}

}  // namespace twiddle
