#include "layers/local_response_norm.h"

#include <cmath>

#include "framework/for_each.h"
#include "layers/cuda/norm_stretches.h"

namespace twiddle {

namespace {

// base = k + scale * sum of x^2 over the window; one call a row. Each window is summed anew: a running sum would keep
// the rounding of large values that have left it.
struct WindowSquares {
  ChannelWindow window;
  float k, scale;
  const float* x;
  float* base;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    std::int64_t first, last;
    window.bounds(row, first, last);
    float* const to = base + row * window.inner;
    for (std::int64_t i = 0; i < window.inner; ++i) to[i] = k;
    for (std::int64_t other = first; other <= last; ++other) {
      const float* const from = x + other * window.inner;
      for (std::int64_t i = 0; i < window.inner; ++i) to[i] += scale * from[i] * from[i];
    }
  }
};

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

template <class Power>
struct Normalize {
  Power power;  // base^-beta
  TWIDDLE_HD float operator()(float value, float base) const { return value * power(base); }
};

// d y_j / d x_i = [i = j] base_j^-beta - 2 scale beta x_i x_j base_j^(-beta - 1): a part of its own, which is dy
// normalised as x was, and one through the windows that hold x_i.
struct ThroughWindows {
  TWIDDLE_HD float operator()(float own, float x, float base) const { return own * x / base; }
};

struct SubtractWindows {  // one call a row
  ChannelWindow window;
  float factor;  // 2 scale beta
  const float *x, *through;
  float* grad_x;  // holds the own part
  TWIDDLE_HD void operator()(std::int64_t row) const {
    std::int64_t first, last;
    window.bounds(row, first, last);
    float* const to = grad_x + row * window.inner;
    const float* const own_x = x + row * window.inner;
    for (std::int64_t other = first; other <= last; ++other) {
      const float* const from = through + other * window.inner;
      for (std::int64_t i = 0; i < window.inner; ++i) to[i] -= factor * own_x[i] * from[i];
    }
  }
};

constexpr std::int64_t root_cost = 8, power_cost = 50, division_cost = 4;  // simple operations that they are worth

void find_bases(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& base) {
  for_each_index(stream, lrn.rows, WindowSquares{lrn.window, lrn.k, lrn.scale, x.read(), base.write()}, lrn.cost());
}

// out = values base^-beta; `out` may be one of both.
void normalize(Stream& stream, float beta, const Tensor& values, const Tensor& base, Tensor& out) {
  if (beta == 0.75f)
    map_elements(stream, values.size(), Normalize<PowerThreeQuarters>{}, root_cost, out.write(), values.read(),
                 base.read());
  else
    map_elements(stream, values.size(), Normalize<AnyPower>{{beta}}, power_cost, out.write(), values.read(),
                 base.read());
}

void forward_rows(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& y) {
  find_bases(stream, lrn, x, y);
  normalize(stream, lrn.beta, x, y, y);
}

void backward_rows(Stream& stream, const Lrn& lrn, const Tensor& x, const Tensor& grad_y, Tensor& grad_x) {
  Tensor through(stream, x.shape());
  find_bases(stream, lrn, x, through);
  normalize(stream, lrn.beta, grad_y, through, grad_x);
  map_elements(stream, x.size(), ThroughWindows{}, division_cost, through.write(), grad_x.read(), x.read(),
               through.read());
  for_each_index(stream, lrn.rows,
                 SubtractWindows{lrn.window, 2 * lrn.scale * lrn.beta, x.read(), through.read(), grad_x.write()},
                 lrn.cost());
}

void forward_all(Stream& stream, const Lrn& lrn, const Tensor& x, Tensor& y) {
  if (!on_gpu(stream) || !normalize_in_stretches(stream, lrn, x, y)) forward_rows(stream, lrn, x, y);
}

void backward_all(Stream& stream, const Lrn& lrn, const Tensor& x, const Tensor& grad_y, Tensor& grad_x) {
  if (!on_gpu(stream) || !normalize_backward_in_stretches(stream, lrn, x, grad_y, grad_x))
    backward_rows(stream, lrn, x, grad_y, grad_x);
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
                 join("take ", size_ - 1, " or ", size_ + 1));
  if (site.input.empty())
    throw Error(ErrorKind::config, join(params.owner(), " needs an input with channels, and gets a scalar"));
}

std::string LocalResponseNorm::describe() const {
  return join("size ", size_, ", alpha ", alpha_, ", beta ", beta_, ", k ", k_);
}

Variable LocalResponseNorm::forward(Context& ctx, const Variable& x) {
  const Tensor value = x.value();
  const std::int64_t channels = value.dim(1), rows = value.dim(0) * channels;
  const Lrn lrn{{channels, value.size() / rows, size_ / 2}, rows, k_, alpha_ / static_cast<float>(size_), beta_};

  Tensor y(*ctx.stream, value.shape());
  forward_all(*ctx.stream, lrn, value, y);
  return ctx.tape.record(name(), y, {x}, [x, value, lrn](Context& backward_ctx, const Tensor& grad_y) {
    Tensor grad_x(*backward_ctx.stream, value.shape());
    backward_all(*backward_ctx.stream, lrn, value, grad_y, grad_x);
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
