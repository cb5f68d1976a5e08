#pragma once
#include "framework/for_each.h"

namespace twiddle {

namespace detail {

template <class Rows>
struct ElementInRow {
  Rows functor;
  Divisor columns;
  TWIDDLE_HD void operator()(std::int64_t i) const { functor.row(columns.quotient(i))(columns.remainder(i)); }
};

template <class Rows>
struct WholeRow {
  Rows functor;
  std::int64_t columns;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const auto f = functor.row(row);
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column) f(column);
  }
};

}  // namespace detail

// For functions of every element of a matrix that differ from row to row: functor.row(row) makes the row's own, which
// is called with each column, in any order. A GPU's thread has an element, the CPU's loop over columns is vector code.
template <class Rows>
void for_each_in_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Rows& functor,
                      std::int64_t cost = 1) {
  if (rows <= 0 || columns <= 0) return;
  if (on_gpu(stream))
    return for_each_index(stream, rows * columns, detail::ElementInRow<Rows>{functor, Divisor(columns)}, cost);
  for_each_index(stream, rows, detail::WholeRow<Rows>{functor, columns}, columns * cost);
}

}  // namespace twiddle
