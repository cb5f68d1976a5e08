#include "framework/tensor_ops.h"

#include <cmath>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

struct Add {
  TWIDDLE_HD float operator()(float a, float b) const { return a + b; }
};

struct Axpy {
  float factor;
  TWIDDLE_HD float operator()(float x, float y) const { return y + factor * x; }
};

struct AddBias {  // y [outer, channels, inner] as rows of `inner`
  Divisor channels;
  const float* bias;
  struct Row {
    float bias;
    TWIDDLE_HD float operator()(std::int64_t, float y) const { return y + bias; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {bias[channels.remainder(row)]}; }
};

struct RowSum {
  std::int64_t columns;
  const float* x;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return x[row * columns + column]; }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

struct ColumnSum {  // x [rows, columns] to [columns]
  std::int64_t columns;
  const float* x;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return x[row * columns + column]; }
  TWIDDLE_HD void store(std::int64_t column, double sum) const { sums[column] = static_cast<float>(sum); }
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

struct RootOfSum {
  const float* x;
  float* root;
  TWIDDLE_HD float term(std::int64_t, std::int64_t column) const { return x[column]; }
  TWIDDLE_HD void store(std::int64_t, double sum) const { *root = static_cast<float>(sqrt(sum)); }
};

struct LimitNorm {  // one row
  const float* norm;
  float limit;
  struct Row {
    float factor;
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return x * factor; }
  };
  TWIDDLE_HD Row row(std::int64_t) const { return {*norm > limit && *norm <= 3.4028235e38f ? limit / *norm : 1.0f}; }
};

}  // namespace

void add(Stream& stream, const Tensor& a, const Tensor& b, Tensor& sum) {
  require(a.shape() == b.shape() && a.shape() == sum.shape(), "add: shapes ", to_string(a.shape()), ", ",
          to_string(b.shape()), ", ", to_string(sum.shape()), " differ");
  map_elements(stream, sum.size(), Add{}, 1, sum.write(), a.read(), b.read());
}

void axpy(Stream& stream, float factor, const Tensor& x, Tensor& y) {
  require(x.size() == y.size(), "axpy: sizes ", x.size(), " and ", y.size(), " differ");
  map_elements(stream, y.size(), Axpy{factor}, 1, y.write(), x.read(), y.read());
}

void add_bias(Stream& stream, const Tensor& bias, std::int64_t inner, Tensor& y) {
  const std::int64_t channels = bias.size();
  require(inner > 0 && channels > 0 && y.size() % (channels * inner) == 0, "add_bias: ", channels,
          " biases do not fit ", to_string(y.shape()));
  map_rows(stream, y.size() / inner, inner, AddBias{Divisor(channels), bias.read()}, 1, y.write(), y.read());
}

Tensor sum_over_channels(Stream& stream, const Tensor& y, std::int64_t channels, std::int64_t inner) {
  require(inner > 0 && channels > 0 && y.size() % (channels * inner) == 0, "sum_over_channels: ", channels,
          " channels do not fit ", to_string(y.shape()));
  const std::int64_t outer = y.size() / inner / channels;
  Tensor sums(stream, {channels});
  if (inner == 1) {
    reduce_columns(stream, outer, channels, ColumnSum{channels, y.read(), sums.write()});
    return sums;
  }
  Tensor row_sums(stream, {outer * channels});
  reduce_rows(stream, outer * channels, inner, RowSum{inner, y.read(), row_sums.write()});
  reduce_columns(stream, outer, channels, ColumnSum{channels, row_sums.read(), sums.write()});
  return sums;
}

Tensor l2_norm(Stream& stream, const std::vector<Tensor>& tensors) {
  constexpr std::int64_t columns = 4096;
  std::int64_t rows = 0;
  for (const Tensor& x : tensors) rows += (x.size() + columns - 1) / columns;
  Tensor partial(stream, {rows}), norm(stream, {1});
  float* sums = partial.write();
  for (const Tensor& x : tensors) {
    const std::int64_t own_rows = (x.size() + columns - 1) / columns;
    if (own_rows > 0) reduce_rows(stream, own_rows, columns, RowSquares{columns, x.size(), x.read(), sums});
    sums += own_rows;
  }
  reduce_rows(stream, 1, rows, RootOfSum{partial.read(), norm.write()});
  return norm;
}

void limit_norm(Stream& stream, const Tensor& norm, float limit, Tensor& x) {
  map_rows(stream, 1, x.size(), LimitNorm{norm.read(), limit}, 1, x.write(), x.read());
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
