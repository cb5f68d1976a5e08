#pragma once
#include "framework/for_each.h"

namespace twiddle {

template <class Number>
struct PairOf {
  Number first, second;
};

namespace detail {

template <class Op>
struct PairFold {
  Op op;
  TWIDDLE_HD PairOf<double> start() const { return {0, 0}; }
  TWIDDLE_HD PairOf<double> join(const PairOf<double>& a, const PairOf<double>& b) const {
    return {a.first + b.first, a.second + b.second};
  }
  TWIDDLE_HD PairOf<double> term(std::int64_t row, std::int64_t column) const {
    const PairOf<float> pair = op.row(row)(column);
    return {pair.first, pair.second};
  }
  TWIDDLE_HD void store(std::int64_t row, const PairOf<double>& sums) const { op.store(row, sums); }
};

// On the CPU: in lanes of floats, as in reduce_row_cpu. In doubles alone a batch norm's backward pass took twice as
// long.
template <class Op>
struct PairsOfRow {
  Op op;
  std::int64_t columns;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const auto term = op.row(row);
    PairOf<double> sums{0, 0};
    for (std::int64_t begin = 0; begin < columns; begin += reduce_run) {
      const std::int64_t end = begin + reduce_run < columns ? begin + reduce_run : columns;
      float first[reduce_lanes] = {}, second[reduce_lanes] = {};
      std::int64_t column = begin;
      for (; column + reduce_lanes <= end; column += reduce_lanes) {
#pragma omp simd
        for (std::int64_t lane = 0; lane < reduce_lanes; ++lane) {
          const PairOf<float> pair = term(column + lane);
          first[lane] += pair.first, second[lane] += pair.second;
        }
      }
      for (; column < end; ++column) {
        const PairOf<float> pair = term(column);
        first[0] += pair.first, second[0] += pair.second;
      }
      for (std::int64_t lane = 0; lane < reduce_lanes; ++lane) sums.first += first[lane], sums.second += second[lane];
    }
    op.store(row, sums);
  }
};

}  // namespace detail

// As reduce_rows, for two sums that need the same operands, which are read once for both: op.row(row) makes the row's
// function of a column, which gives a PairOf<float>, op.store(row, PairOf<double>) takes the sums. The order of a sum
// is fixed.
template <class Op>
void sum_pairs_of_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Op& op) {
  if (on_gpu(stream)) return fold_rows(stream, rows, columns, detail::PairFold<Op>{op});
  for_each_index(stream, rows, detail::PairsOfRow<Op>{op, columns}, columns);
}

}  // namespace twiddle
