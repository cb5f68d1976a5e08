#include "layers/local_response_norm.h"

#include <cmath>

#include "framework/config/params.h"
#include "framework/for_each.h"
#include "layers/cuda/norm_ranges.h"
#include "layers/planes.h"

namespace twiddle {

namespace {

// AlexNet's power, by two square roots instead of a logarithm and an exponential.
struct PowerThreeQuarters {
  TWIDDLE_HD float operator()(float base) const {
    const float root = sqrtf(base);
    return 1 / (root * sqrtf(root));
  }
};

struct AnyPower {
  float beta;
  TWIDDLE_HD float operator()(float base) const { return powf(base, -beta); }
};

// to[i] = result(i, sum over the window of term(values)) for each element of a row, some neighbours at a time, so that
// the sums stay in registers. Each window is summed from scratch: a running sum would keep the rounding of large values
// that have left it.
template <class In, class Out, class Term, class Result>
TWIDDLE_HD void map_windows(const ChannelWindow& window, std::int64_t row, const In* values, Out* to, const Term& term,
                            const Result& result) {
  constexpr int lanes = 16;
  std::int64_t first, last;
  window.bounds(row, first, last);
  const std::int64_t inner = window.inner, whole = inner / lanes * lanes;
  for (std::int64_t begin = 0; begin < whole; begin += lanes) {
    float sums[lanes] = {};
    for (std::int64_t other = first; other <= last; ++other)
      for (int lane = 0; lane < lanes; ++lane) sums[lane] += term(to_float(values[other * inner + begin + lane]));
    for (int lane = 0; lane < lanes; ++lane) sums[lane] = result(begin + lane, sums[lane]);
    for (int lane = 0; lane < lanes; ++lane) to[begin + lane] = from_float<Out>(sums[lane]);
  }
  for (std::int64_t i = whole; i < inner; ++i) {
    float sum = 0;
    for (std::int64_t other = first; other <= last; ++other) sum += term(to_float(values[other * inner + i]));
    to[i] = from_float<Out>(result(i, sum));
  }
}

// base = k + scale * sum of x^2 over the window.
template <class T>
struct WindowSquares {
  ChannelWindow window;
  float k, scale;
  const T* x;
  // to[i] = result(i, base) for the elements of a row.
  template <class Out, class Result>
  TWIDDLE_HD void row(std::int64_t row, Out* to, const Result& result) const {
    const float add = k, factor = scale;
    map_windows(
        window, row, x, to, [](float value) { return value * value; },
        [=](std::int64_t i, float sum) { return result(i, add + factor * sum); });
  }
};

// All of these take a row at a call, while a CPU's first cache holds its bases.
template <class Power, class T>
struct NormalizeRow {
  WindowSquares<T> squares;
  Power power;  // base^-beta
  T* y;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const T* const from = squares.x + row * squares.window.inner;
    const Power of = power;
    squares.row(row, y + row * squares.window.inner,
                [=](std::int64_t i, float base) { return to_float(from[i]) * of(base); });
  }
};

// d y_j / d x_i = [i = j] base_j^-beta - 2 scale beta x_i x_j base_j^(-beta - 1): a direct term, and one through
// the windows that contain x_i.
template <class Power, class T>
struct BackwardRow {
  WindowSquares<T> squares;
  Power power;
  const T* grad_y;
  float *own, *through;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const std::int64_t inner = squares.window.inner;
    const T* const from = squares.x + row * inner;
    const T* const grad = grad_y + row * inner;
    float* const to_own = own + row * inner;
    float* const to_through = through + row * inner;
    squares.row(row, to_through, [](std::int64_t, float base) { return base; });
    for (std::int64_t i = 0; i < inner; ++i) {
      const float base = to_through[i], value = to_float(grad[i]) * power(base);
      to_own[i] = value;
      to_through[i] = value * to_float(from[i]) / base;
    }
  }
};

template <class T>
struct SubtractWindows {  // one call a row
  ChannelWindow window;
  float factor;  // 2 scale beta
  const T* x;
  const float *own, *through;
  T* grad_x;  // may be `own`
  TWIDDLE_HD void operator()(std::int64_t row) const {
    const T* const row_x = x + row * window.inner;
    const float* const row_own = own + row * window.inner;
    const float times = factor;
    map_windows(
        window, row, through, grad_x + row * window.inner, [](float value) { return value; },
        [=](std::int64_t i, float sum) { return row_own[i] - times * to_float(row_x[i]) * sum; });
  }
};

constexpr std::int64_t root_cost = 8, power_cost = 50;  // simple operations that they are worth

// work(power, cost of it)
template <class Work>
void with_power(float beta, const Work& work) {
  if (beta == 0.75f)
    work(PowerThreeQuarters{}, root_cost);
  else
    work(AnyPower{beta}, power_cost);
}

void forward_rows(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& y) {
  with_power(lrn.beta, [&]<class Power>(const Power& power, std::int64_t cost) {
    with_type(x.type(), [&](auto t) {
      using T = decltype(t);
      const NormalizeRow<Power, T> normalize{{lrn.window, lrn.k, lrn.scale, x.read<T>()}, power, y.write<T>()};
      for_each_index(stream, lrn.rows, normalize, lrn.cost() + cost * lrn.window.inner);
    });
  });
}

void backward_rows(Stream& stream, const Lrn& lrn, const Tensor& x, const Tensor& grad_y, Tensor& grad_x) {
  Tensor through(stream, x.shape()), own = x.type() == DType::f32 ? grad_x : Tensor(stream, x.shape());
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    with_power(lrn.beta, [&]<class Power>(const Power& power, std::int64_t cost) {
      const BackwardRow<Power, T> backward{
          {lrn.window, lrn.k, lrn.scale, x.read<T>()}, power, grad_y.read<T>(), own.write(), through.write()};
      for_each_index(stream, lrn.rows, backward, lrn.cost() + cost * lrn.window.inner);
    });
    for_each_index(stream, lrn.rows,
                   SubtractWindows<T>{lrn.window, 2 * lrn.scale * lrn.beta, x.read<T>(), own.read(), through.read(),
                                      grad_x.write<T>()},
                   lrn.cost());
  });
}

}  // namespace

LocalResponseNorm::LocalResponseNorm(const Site& site, Params& params)
    : Layer(site.name, site.input),
      size_(params.integer("size", 5, 1, 4095)),
      alpha_(static_cast<float>(params.number("alpha", 1e-4, 0, 1e6))),
      beta_(static_cast<float>(params.number("beta", 0.75, 0, 100))),
      k_(static_cast<float>(params.number("k", 2, 1e-6, 1e6))) {
  if (size_ % 2 == 0)
    params.error("size", join("'size' must be odd, so that the window has a middle; got ", size_),
                 join("use ", size_ - 1, " or ", size_ + 1));
  require_channels(site, params);
}

std::string LocalResponseNorm::describe() const {
  return join("size ", size_, ", alpha ", alpha_, ", beta ", beta_, ", k ", k_);
}

Variable LocalResponseNorm::forward(Context& ctx, const Variable& x) {
  const Tensor value = x.value();
  const std::int64_t channels = value.dim(1), rows = value.dim(0) * channels;
  const Lrn lrn{{channels, value.size() / rows, size_ / 2}, rows, k_, alpha_ / static_cast<float>(size_), beta_};

  Stream& stream = *ctx.stream;
  Tensor y(stream, value.shape(), value.type());
  if (!on_gpu(stream) || !normalize_in_ranges(stream, lrn, value, y)) forward_rows(stream, lrn, value, y);
  return ctx.tape.record(name(), y, {x}, [x, value, lrn](Context& backward_ctx, const Tensor& grad_y) {
    Stream& back = *backward_ctx.stream;
    Tensor grad_x(back, value.shape(), value.type());
    if (!on_gpu(back) || !normalize_backward_in_ranges(back, lrn, value, grad_y, grad_x))
      backward_rows(back, lrn, value, grad_y, grad_x);
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
