#include "framework/tensor_ops.h"

#include <cmath>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

struct Add {
  TWIDDLE_HD float operator()(float a, float b) const { return a + b; }
};

struct Same {
  TWIDDLE_HD float operator()(float x) const { return x; }
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

template <class T>
struct RowSum {
  std::int64_t columns;
  const T* x;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return to_float(x[row * columns + column]); }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

template <class T>
struct ColumnSum {  // x [rows, columns] to [columns]
  std::int64_t columns;
  const T* x;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const { return to_float(x[row * columns + column]); }
  TWIDDLE_HD void store(std::int64_t column, double sum) const { sums[column] = static_cast<float>(sum); }
};

// x split into rows of `columns` terms, each of `width` neighbours; the last may be shorter. In double, because the
// square of a float above 1.8e19 overflows. A long term is summed in lanes, which vectorise.
template <int width>
struct RowSquares {
  static constexpr int lanes = width < 16 ? width : 16;
  std::int64_t columns, count;
  const float* x;
  double* sums;
  TWIDDLE_HD double start() const { return 0; }
  TWIDDLE_HD double join(double a, double b) const { return a + b; }
  TWIDDLE_HD double term(std::int64_t row, std::int64_t column) const {
    const std::int64_t begin = (row * columns + column) * width;
    double sum = 0, lane[lanes] = {};
    if (begin + width <= count) {
      for (int k = 0; k < width; k += lanes)
        for (int i = 0; i < lanes; ++i) lane[i] += static_cast<double>(x[begin + k + i]) * x[begin + k + i];
    } else {
      for (std::int64_t i = begin; i < count; ++i) sum += static_cast<double>(x[i]) * x[i];
    }
    for (const double part : lane) sum += part;
    return sum;
  }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = sum; }
};

constexpr float largest_float = 3.4028235e38f;

struct RootOfSum {
  const double* x;
  float* root;
  TWIDDLE_HD double start() const { return 0; }
  TWIDDLE_HD double join(double a, double b) const { return a + b; }
  TWIDDLE_HD double term(std::int64_t, std::int64_t column) const { return x[column]; }
  TWIDDLE_HD void store(std::int64_t, double sum) const {
    // Finite numbers have no infinite norm: one beyond the range of floats becomes the largest of them.
    const bool beyond = sum - sum == 0 && sqrt(sum) > largest_float;
    *root = beyond ? largest_float : static_cast<float>(sqrt(sum));
  }
};

}  // namespace

void add(Stream& stream, const Tensor& a, const Tensor& b, Tensor& sum) {
  require(a.shape() == b.shape() && a.shape() == sum.shape(), "add: shapes ", to_string(a.shape()), ", ",
          to_string(b.shape()), ", ", to_string(sum.shape()), " differ");
  with_type(sum.type(), [&](auto t) {
    using T = decltype(t);
    map_elements(stream, sum.size(), Add{}, 1, sum.write<T>(), a.read<T>(), b.read<T>());
  });
}

Tensor cast(Stream& stream, const Tensor& x, DType type) {
  if (!x.defined() || x.type() == type) return x;
  Tensor y(stream, x.shape(), type);
  cast_into(stream, x, y);
  return y;
}

void cast_into(Stream& stream, const Tensor& x, Tensor& y) {
  require(x.shape() == y.shape(), "cast: shapes ", to_string(x.shape()), ", ", to_string(y.shape()), " differ");
  with_type(x.type(), [&](auto from) {
    with_type(y.type(), [&](auto to) {
      map_elements(stream, y.size(), Same{}, 1, y.write<decltype(to)>(), x.read<decltype(from)>());
    });
  });
}

void add_bias(Stream& stream, const Tensor& bias, std::int64_t inner, Tensor& y) {
  const std::int64_t channels = bias.size();
  require(inner > 0 && channels > 0 && y.size() % (channels * inner) == 0, "add_bias: ", channels,
          " biases do not fit ", to_string(y.shape()));
  with_type(y.type(), [&](auto t) {
    using T = decltype(t);
    map_rows(stream, y.size() / inner, inner, AddBias{Divisor(channels), bias.read()}, 1, y.write<T>(), y.read<T>());
  });
}

Tensor sum_over_channels(Stream& stream, const Tensor& y, std::int64_t channels, std::int64_t inner) {
  require(inner > 0 && channels > 0 && y.size() % (channels * inner) == 0, "sum_over_channels: ", channels,
          " channels do not fit ", to_string(y.shape()));
  const std::int64_t outer = y.size() / inner / channels;
  Tensor sums(stream, {channels});
  with_type(y.type(), [&](auto t) {
    using T = decltype(t);
    if (inner == 1) return reduce_columns(stream, outer, channels, ColumnSum<T>{channels, y.read<T>(), sums.write()});
    Tensor row_sums(stream, {outer * channels});
    reduce_rows(stream, outer * channels, inner, RowSum<T>{inner, y.read<T>(), row_sums.write()});
    reduce_columns(stream, outer, channels, ColumnSum<float>{channels, row_sums.read(), sums.write()});
  });
  return sums;
}

Tensor l2_norm(Stream& stream, const std::vector<Tensor>& tensors) {
  constexpr std::int64_t row = 4096;
  constexpr int width = 64;
  const auto rows_of = [](const Tensor& x) { return (x.size() + row - 1) / row; };
  std::int64_t rows = 0;
  for (const Tensor& x : tensors) rows += rows_of(x);
  Tensor partial(stream, {rows, 2}), norm(stream, {1});  // a double in two words
  auto* sums = reinterpret_cast<double*>(partial.write());
  for (const Tensor& x : tensors) {
    if (on_gpu(stream))  // neighbours go to neighbouring threads
      fold_rows(stream, rows_of(x), row, RowSquares<1>{row, x.size(), x.read(), sums});
    else
      fold_rows(stream, rows_of(x), row / width, RowSquares<width>{row / width, x.size(), x.read(), sums});
    sums += rows_of(x);
  }
  fold_rows(stream, 1, rows, RootOfSum{reinterpret_cast<const double*>(partial.read()), norm.write()});
  return norm;
}

bool all_finite(Stream& stream, const Tensor& x) {
  // A sum of x * 0 is 0 where all are finite and NaN otherwise, but compilers may fold it; comparing a sum of squares
  // can overflow.
  for (const float value : cast(stream, x, DType::f32).to_vector(stream)) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace twiddle
