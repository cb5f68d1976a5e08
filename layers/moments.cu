#include "layers/moments.h"

#include "framework/error.h"
#include "framework/sum_pairs.h"

namespace twiddle {

namespace {

// On a GPU: the sums, in double, of what the numbers differ from their row's first, and of its squares.
template <class T>
struct MomentsOfRows {
  std::int64_t columns;
  const T* x;
  float* moments;
  TWIDDLE_HD PairOf<double> start() const { return {0, 0}; }
  TWIDDLE_HD PairOf<double> join(const PairOf<double>& a, const PairOf<double>& b) const {
    return {a.first + b.first, a.second + b.second};
  }
  TWIDDLE_HD PairOf<double> term(std::int64_t row, std::int64_t column) const {
    const double difference = to_float(x[row * columns + column]) - to_float(x[row * columns]);
    return {difference, difference * difference};
  }
  TWIDDLE_HD void store(std::int64_t row, const PairOf<double>& sums) const {
    const auto count = static_cast<double>(columns);
    const double rest = sums.second - sums.first * sums.first / count;
    moments[2 * row] = static_cast<float>(to_float(x[row * columns]) + sums.first / count);
    moments[2 * row + 1] = static_cast<float>(rest < 0 ? 0 : rest);
  }
};

// On the CPU: twice over a row, the second time in its cache.
template <class T>
struct MomentsOfRow {
  std::int64_t columns;
  const T* x;
  float* moments;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const T* const from = x + row * columns;
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < columns; ++i) sum += to_float(from[i]);
    const double mean = sum / static_cast<double>(columns);
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < columns; ++i) squares += (to_float(from[i]) - mean) * (to_float(from[i]) - mean);
    moments[2 * row] = static_cast<float>(mean);
    moments[2 * row + 1] = static_cast<float>(squares);
  }
};

}  // namespace

Tensor row_moments(Stream& stream, const Tensor& x, std::int64_t rows, std::int64_t columns) {
  Tensor moments(stream, {rows, 2});
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    if (on_gpu(stream))
      fold_rows(stream, rows, columns, MomentsOfRows<T>{columns, x.read<T>(), moments.write()});
    else
      for_each_index(stream, rows, MomentsOfRow<T>{columns, x.read<T>(), moments.write()}, 2 * columns);
  });
  return moments;
}

}  // namespace twiddle
