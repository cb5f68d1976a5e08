#include "layers/moments.h"

#include "framework/error.h"
#include "framework/sum_pairs.h"

namespace twiddle {

namespace {

// On a GPU: the sums, in double, of what the numbers differ from their row's first, and of its squares.
struct MomentsOfRows {
  std::int64_t columns;
  const float* x;
  float* moments;
  TWIDDLE_HD PairOf<double> start() const { return {0, 0}; }
  TWIDDLE_HD PairOf<double> join(const PairOf<double>& a, const PairOf<double>& b) const {
    return {a.first + b.first, a.second + b.second};
  }
  TWIDDLE_HD PairOf<double> term(std::int64_t row, std::int64_t column) const {
    const double difference = x[row * columns + column] - x[row * columns];
    return {difference, difference * difference};
  }
  TWIDDLE_HD void store(std::int64_t row, const PairOf<double>& sums) const {
    const auto count = static_cast<double>(columns);
    const double rest = sums.second - sums.first * sums.first / count;
    moments[2 * row] = static_cast<float>(x[row * columns] + sums.first / count);
    moments[2 * row + 1] = static_cast<float>(rest < 0 ? 0 : rest);
  }
};

// On the CPU: twice over a row, the second time in its cache.
struct MomentsOfRow {
  std::int64_t columns;
  const float* x;
  float* moments;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float* const from = x + row * columns;
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < columns; ++i) sum += from[i];
    const double mean = sum / static_cast<double>(columns);
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < columns; ++i) squares += (from[i] - mean) * (from[i] - mean);
    moments[2 * row] = static_cast<float>(mean);
    moments[2 * row + 1] = static_cast<float>(squares);
  }
};

}  // namespace

Tensor row_moments(Stream& stream, const Tensor& x, std::int64_t rows, std::int64_t columns) {
  Tensor moments(stream, {rows, 2});
  if (on_gpu(stream))
    fold_rows(stream, rows, columns, MomentsOfRows{columns, x.read(), moments.write()});
  else
    for_each_index(stream, rows, MomentsOfRow{columns, x.read(), moments.write()}, 2 * columns);
  return moments;
}

}  // namespace twiddle
