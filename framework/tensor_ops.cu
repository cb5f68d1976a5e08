#include "framework/tensor_ops.h"

#include <cmath>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

struct Add {
  const float *a, *b;
  float* sum;
  TWIDDLE_HD void operator()(std::int64_t i) const { sum[i] = a[i] + b[i]; }
};

struct Scale {
  float factor;
  float* x;
  TWIDDLE_HD void operator()(std::int64_t i) const { x[i] *= factor; }
};

struct Axpy {
  float factor;
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const { y[i] += factor * x[i]; }
};

struct AddBias {  // y [outer, channels, inner], one call a row
  std::int64_t channels, inner;
  const float* bias;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const float value = bias[row % channels];
    float* const out = y + row * inner;
    for (std::int64_t i = 0; i < inner; ++i) out[i] += value;
  }
};

struct RowSum {
  std::int64_t columns;
  const float* x;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return x[row * columns + column]; }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

struct SumOuter {  // x [outer, channels] to [channels]
  std::int64_t outer, channels;
  const float* x;
  float* sums;
  TWIDDLE_HD void operator()(std::int64_t channel) const {
    double sum = 0;
    for (std::int64_t o = 0; o < outer; ++o) sum += x[o * channels + channel];
    sums[channel] = static_cast<float>(sum);
  }
};

struct RowSquares {  // x cut into rows of `columns`; the last may be shorter
  std::int64_t columns, count;
  const float* x;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * columns + column;
    return i < count ? x[i] * x[i] : 0.0f;
  }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

}  // namespace

void add(Stream& stream, const Tensor& a, const Tensor& b, Tensor& sum) {
  require(a.shape() == b.shape() && a.shape() == sum.shape(), "add: shapes ", to_string(a.shape()), ", ",
          to_string(b.shape()), ", ", to_string(sum.shape()), " differ");
  for_each_index(stream, sum.size(), Add{a.read(), b.read(), sum.write()});
}

void scale(Stream& stream, float factor, Tensor& x) {
  for_each_index(stream, x.size(), Scale{factor, x.write()});
}

void axpy(Stream& stream, float factor, const Tensor& x, Tensor& y) {
  require(x.size() == y.size(), "axpy: sizes ", x.size(), " and ", y.size(), " differ");
  for_each_index(stream, y.size(), Axpy{factor, x.read(), y.write()});
}

void add_bias(Stream& stream, const Tensor& bias, std::int64_t inner, Tensor& y) {
  const std::int64_t channels = bias.size();
  require(inner > 0 && channels > 0 && y.size() % (channels * inner) == 0, "add_bias: ", channels,
          " biases do not fit ", to_string(y.shape()));
  for_each_index(stream, y.size() / inner, AddBias{channels, inner, bias.read(), y.write()}, inner);
}

Tensor sum_over_channels(Stream& stream, const Tensor& y, std::int64_t channels, std::int64_t inner) {
  require(inner > 0 && channels > 0 && y.size() % (channels * inner) == 0, "sum_over_channels: ", channels,
          " channels do not fit ", to_string(y.shape()));
  const std::int64_t rows = y.size() / inner;
  Tensor sums(stream, {channels});
  if (inner == 1) {
    for_each_index(stream, channels, SumOuter{rows / channels, channels, y.read(), sums.write()}, rows / channels);
    return sums;
  }
  Tensor row_sums(stream, {rows});
  reduce_rows(stream, rows, inner, RowSum{inner, y.read(), row_sums.write()});
  for_each_index(stream, channels, SumOuter{rows / channels, channels, row_sums.read(), sums.write()}, rows / channels);
  return sums;
}

double sum_of_squares(Stream& stream, const Tensor& x) {
  constexpr std::int64_t columns = 4096;
  const std::int64_t rows = (x.size() + columns - 1) / columns;
  if (rows == 0) return 0;
  Tensor partial(stream, {rows});
  reduce_rows(stream, rows, columns, RowSquares{columns, x.size(), x.read(), partial.write()});
  double total = 0;
  for (const float sum : partial.to_vector(stream)) total += sum;
  return total;
}

bool all_finite(Stream& stream, const Tensor& x) {
  // A sum of x * 0 is 0 where all are finite and NaN otherwise, but compilers may fold it; comparing a sum of squares
  // can overflow.
  for (const float value : x.to_vector(stream)) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace twiddle
