#include "layers/local_response_norm.h"

#include <cmath>

#include "framework/for_each.h"

namespace twiddle {

namespace {

struct Powers {
  float wanted, inverse;  // base^-beta, 1 / base
};

// AlexNet's, by inverse roots instead of a logarithm and an exponential. Of an infinite base both are zero.
struct PowersThreeQuarters {
  TWIDDLE_HD Powers operator()(float base) const {
    const float root = inverse_root(base);
    return {root * sqrtf(root), root * root};
  }
};

struct AnyPowers {
  float beta;
  TWIDDLE_HD Powers operator()(float base) const { return {powf(base, -beta), 1 / base}; }
};

// Images of `channels` rows of `pixels`, over which a window of channels slides. Both passes do `Lanes` pixels side by
// side at a time, one a thread of a GPU, and some that stay in a CPU's registers.
struct ChannelWindow {
  std::int64_t channels, pixels, reach;  // reach: neighbours on either side
  float k, scale;

  TWIDDLE_HD std::int64_t first(std::int64_t channel) const { return channel < reach ? 0 : channel - reach; }
  TWIDDLE_HD std::int64_t last(std::int64_t channel) const {
    return channels - 1 - channel < reach ? channels - 1 : channel + reach;
  }

  // k + scale * sum of x^2 over the window of one channel, from x at its image's pixel on. Each window is summed anew:
  // a running sum would keep the rounding of large values that have left it.
  template <int Lanes>
  TWIDDLE_HD void bases(const float* x, std::int64_t channel, float (&sums)[Lanes]) const {
    for (int lane = 0; lane < Lanes; ++lane) sums[lane] = 0;
    for (std::int64_t other = first(channel); other <= last(channel); ++other)
      for (int lane = 0; lane < Lanes; ++lane) {
        const float value = x[other * pixels + lane];
        sums[lane] += value * value;
      }
    for (int lane = 0; lane < Lanes; ++lane) sums[lane] = k + scale * sums[lane];
  }
};

// A row is a channel of an image.
template <class Power>
struct Normalize {
  ChannelWindow window;
  Divisor channels;
  Power power;
  const float* x;
  float* y;
  template <int Lanes>
  TWIDDLE_HD void pixels(std::int64_t row, std::int64_t pixel) const {
    const std::int64_t image = channels.quotient(row), channel = row - image * window.channels;
    float bases[Lanes];
    window.bases(x + image * window.channels * window.pixels + pixel, channel, bases);
    const std::int64_t at = row * window.pixels + pixel;
    for (int lane = 0; lane < Lanes; ++lane) y[at + lane] = x[at + lane] * power(bases[lane]).wanted;
  }
};

// d y_j / d x_i = [i = j] base_j^-beta - 2 scale beta x_i x_j base_j^(-beta - 1): a part of its own, and one through
// the windows that hold x_i. A row is `together` channels of an image, which share the powers of their neighbours.
// Bases are computed anew: had the forward pass kept them, this one would have to load as much again as x.
constexpr int together = 8;

template <class Power>
struct NormalizeBackward {
  ChannelWindow window;
  Divisor rows;  // of an image
  Power power;
  float factor;  // 2 scale beta
  const float *x, *grad_y;
  float* grad_x;
  template <int Lanes>
  TWIDDLE_HD void pixels(std::int64_t row, std::int64_t pixel) const {
    const std::int64_t image = rows.quotient(row), begin = (row - image * rows.value()) * together;
    const std::int64_t end = begin + together < window.channels ? begin + together : window.channels;
    const std::int64_t start = image * window.channels * window.pixels + pixel;
    float own[together][Lanes] = {}, through[together][Lanes] = {};
    for (std::int64_t other = window.first(begin); other <= window.last(end - 1); ++other) {
      float values[Lanes], shares[Lanes];
      window.bases(x + start, other, values);
      for (int lane = 0; lane < Lanes; ++lane) {
        const std::int64_t at = start + other * window.pixels + lane;
        const Powers powers = power(values[lane]);
        values[lane] = grad_y[at] * powers.wanted;
        shares[lane] = values[lane] * x[at] * powers.inverse;
      }
      const std::int64_t lowest = other - window.reach - begin, highest = other + window.reach - begin;
#pragma unroll
      for (int c = 0; c < together; ++c) {
        if (c >= lowest && c <= highest)
          for (int lane = 0; lane < Lanes; ++lane) through[c][lane] += shares[lane];
        if (c == other - begin)
          for (int lane = 0; lane < Lanes; ++lane) own[c][lane] = values[lane];
      }
    }
#pragma unroll
    for (int c = 0; c < together; ++c)
      if (begin + c < end)
        for (int lane = 0; lane < Lanes; ++lane) {
          const std::int64_t at = start + (begin + c) * window.pixels + lane;
          grad_x[at] = own[c][lane] - factor * x[at] * through[c][lane];
        }
  }
};

template <class Body>
struct OnePixel {
  Body body;
  Divisor pixels;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = pixels.quotient(i);
    body.template pixels<1>(row, i - row * pixels.value());
  }
};

template <class Body>
struct OneRow {
  Body body;
  std::int64_t pixels;
  TWIDDLE_HD void operator()(std::int64_t row) const {
    constexpr int lanes = 16;
    std::int64_t pixel = 0;
    for (; pixel + lanes <= pixels; pixel += lanes) body.template pixels<lanes>(row, pixel);
    for (; pixel < pixels; ++pixel) body.template pixels<1>(row, pixel);
  }
};

template <class Body>
void for_each_pixel(Stream& stream, std::int64_t rows, const Body& body, std::int64_t cost) {
  const std::int64_t pixels = body.window.pixels;
  if (on_gpu(stream))
    for_each_index(stream, rows * pixels, OnePixel<Body>{body, Divisor(pixels)});
  else
    for_each_index(stream, rows, OneRow<Body>{body, pixels}, pixels * cost);
}

constexpr std::int64_t root_cost = 8, power_cost = 50;  // simple operations that they are worth

// work(power, cost of it and of a base)
template <class Work>
void with_power(const ChannelWindow& window, float beta, const Work& work) {
  if (beta == 0.75f)
    work(PowersThreeQuarters{}, root_cost + 2 * window.reach);
  else
    work(AnyPowers{beta}, power_cost + 2 * window.reach);
}

void normalize(Stream& stream, const ChannelWindow& window, float beta, const Tensor& x, Tensor& y) {
  with_power(window, beta, [&]<class Power>(const Power& power, std::int64_t cost) {
    for_each_pixel(stream, y.size() / window.pixels,
                   Normalize<Power>{window, Divisor(window.channels), power, x.read(), y.write()}, cost);
  });
}

void normalize_backward(Stream& stream, const ChannelWindow& window, float beta, const Tensor& x, const Tensor& grad_y,
                        Tensor& grad_x) {
  const std::int64_t images = grad_x.size() / window.pixels / window.channels;
  const std::int64_t rows = (window.channels + together - 1) / together;
  with_power(window, beta, [&]<class Power>(const Power& power, std::int64_t cost) {
    for_each_pixel(stream, images * rows,
                   NormalizeBackward<Power>{window, Divisor(rows), power, 2 * window.scale * beta, x.read(),
                                            grad_y.read(), grad_x.write()},
                   together * cost);
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
  const ChannelWindow window{channels, value.size() / rows, size_ / 2, k_, alpha_ / static_cast<float>(size_)};

  Tensor y(*ctx.stream, value.shape());
  normalize(*ctx.stream, window, beta_, value, y);
  return ctx.tape.record(name(), y, {x}, [x, value, window, beta = beta_](Context& backward_ctx, const Tensor& grad_y) {
    Tensor grad_x(*backward_ctx.stream, value.shape());
    normalize_backward(*backward_ctx.stream, window, beta, value, grad_y, grad_x);
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
