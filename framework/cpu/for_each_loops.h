#pragma once
#include <cstdint>

#include "framework/dtype.h"
#include "framework/host_device.h"

// How framework/for_each.h does its work on the CPU: a part of it, which nothing else includes.
namespace twiddle::detail {

// Below this many elements a parallel region costs more than it saves (about 5 us against 1 us per 16k ReLUs,
// measured).
inline constexpr std::int64_t parallel_threshold = 16384;

template <class Functor>
void for_each_index_cpu(std::int64_t count, const Functor& functor, std::int64_t cost) {
#pragma omp parallel for schedule(static) if (count * cost > parallel_threshold)
  for (std::int64_t i = 0; i < count; ++i) functor(i);
}

// Elementwise passes run in blocks: one call per block, with vector code inside. The output may be one of the inputs.
inline constexpr std::int64_t map_block = 4096;

template <class Functor, class Out, class... In>
void map_indexed_cpu(std::int64_t count, const Functor& functor, std::int64_t cost, Out* out, const In*... in) {
  const auto map_one_block = [=](std::int64_t block) {
    const Functor f = functor;  // a local copy, which stores into `out` cannot change
    const std::int64_t begin = block * map_block, end = begin + map_block < count ? begin + map_block : count;
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) out[i] = from_float<Out>(f(i, to_float(in[i])...));
  };
  for_each_index_cpu((count + map_block - 1) / map_block, map_one_block,
                     (count < map_block ? count : map_block) * cost);
}

template <class Rows, class Out, class... In>
void map_rows_cpu(std::int64_t rows, std::int64_t columns, const Rows& functor, std::int64_t cost, Out* out,
                  const In*... in) {
  const auto map_one_row = [=](std::int64_t row) {
    const auto f = functor.row(row);
    const std::int64_t begin = row * columns;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      out[begin + column] = from_float<Out>(f(column, to_float(in[begin + column])...));
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

// Sums are taken in sixteen float lanes, which vectorise, over blocks short enough to lose nothing, and the
// sums of blocks in double.
inline constexpr std::int64_t reduce_lanes = 16, reduce_run = 512;

template <class T>
struct RowTerms {
  std::int64_t columns;
  const T* x;
  float term(std::int64_t row, std::int64_t column) const { return to_float(x[row * columns + column]); }
};

template <class Op>
double reduce_row_cpu(std::int64_t row, std::int64_t columns, const Op& op) {
  double total = 0;
  for (std::int64_t begin = 0; begin < columns; begin += reduce_run) {
    const std::int64_t end = begin + reduce_run < columns ? begin + reduce_run : columns;
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

template <class Functor, class Out, class... In>
void map_and_sum_rows_cpu(std::int64_t rows, std::int64_t columns, const Functor& functor, Out* out, float* sums,
                          const In*... in) {
#pragma omp parallel for schedule(static) if (rows > 1 && rows * columns > parallel_threshold)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = row * columns;
#pragma omp simd
    for (std::int64_t i = begin; i < begin + columns; ++i) out[i] = from_float<Out>(functor(to_float(in[i])...));
    sums[row] = static_cast<float>(reduce_row_cpu(row, columns, RowTerms<Out>{columns, out}));
  }
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

}  // namespace twiddle::detail
