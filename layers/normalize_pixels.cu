#include "layers/normalize_pixels.h"

#include <array>

#include "layers/cuda/pixel_blocks.h"
#include "layers/moments.h"

namespace twiddle {

namespace {

// On the CPU a call takes a strip of pixels of one image, whose channels its cache holds from pass to pass, and whose
// loops over neighbouring pixels are vector code.
constexpr int strip = 64;

struct Strips {
  Divisor each;  // strips of an image
  explicit Strips(const BatchShape& planes) : each((planes.inner + strip - 1) / strip) {}
  std::int64_t count(const BatchShape& planes) const { return planes.batch * each.value(); }

  struct Place {
    std::int64_t at, pixel;  // of its first pixel: in [batch, channels, inner], in [batch, inner]
    int pixels;
  };
  TWIDDLE_HD Place place(const BatchShape& planes, std::int64_t i) const {
    const std::int64_t image = each.quotient(i), first = each.remainder(i) * strip, left = planes.inner - first;
    return {image * planes.channels * planes.inner + first, image * planes.inner + first,
            static_cast<int>(left < strip ? left : strip)};
  }
};

template <class T>
struct ForwardStrip {
  PixelForward<T> pass;
  Strips strips;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const BatchShape& planes = pass.planes;
    const Strips::Place place = strips.place(planes, i);
    const auto channels = static_cast<float>(planes.channels);
    const T* const x = pass.x + place.at;
    float sums[strip] = {}, squares[strip] = {}, mean[strip], inverse[strip];
    // What the numbers differ from a pixel's first adds up without losing digits far from zero.
    for (std::int64_t c = 0; c < planes.channels; ++c)
      for (int p = 0; p < place.pixels; ++p) sums[p] += to_float(x[c * planes.inner + p]) - to_float(x[p]);
    for (int p = 0; p < place.pixels; ++p) mean[p] = to_float(x[p]) + sums[p] / channels;
    for (std::int64_t c = 0; c < planes.channels; ++c)
      for (int p = 0; p < place.pixels; ++p) {
        const float difference = to_float(x[c * planes.inner + p]) - mean[p];
        squares[p] += difference * difference;
      }
    for (int p = 0; p < place.pixels; ++p) inverse[p] = inverse_deviation(squares[p] / channels, pass.epsilon);
    for (std::int64_t c = 0; c < planes.channels; ++c) {
      const float scale = pass.scale[c], bias = pass.bias[c];
      T* const y = pass.y + place.at + c * planes.inner;
      for (int p = 0; p < place.pixels; ++p)
        y[p] = from_float<T>((to_float(x[c * planes.inner + p]) - mean[p]) * inverse[p] * scale + bias);
    }
    for (int p = 0; p < place.pixels; ++p) {
      pass.mean[place.pixel + p] = mean[p];
      pass.inverse[place.pixel + p] = inverse[p];
    }
  }
};

// grad_x = (g - mean(g) - x' mean(g x')) / deviation: g = scale grad_y, x' the normalised x, the means over a pixel.
template <class T>
struct BackwardStrip {
  PixelBackward<T> pass;
  Strips strips;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const BatchShape& planes = pass.planes;
    const Strips::Place place = strips.place(planes, i);
    const auto channels = static_cast<float>(planes.channels);
    const T *const x = pass.x + place.at, *const grad_y = pass.grad_y + place.at;
    float share[strip] = {}, slope[strip] = {}, mean[strip], inverse[strip];
    for (int p = 0; p < place.pixels; ++p) {
      mean[p] = pass.mean[place.pixel + p];
      inverse[p] = pass.inverse[place.pixel + p];
    }
    for (std::int64_t c = 0; c < planes.channels; ++c) {
      const float scale = pass.scale[c];
      for (int p = 0; p < place.pixels; ++p) {
        const float g = to_float(grad_y[c * planes.inner + p]) * scale;
        share[p] += g;
        slope[p] += g * (to_float(x[c * planes.inner + p]) - mean[p]);
      }
    }
    for (int p = 0; p < place.pixels; ++p) {
      share[p] /= channels;
      slope[p] *= inverse[p] * inverse[p] / channels;
    }
    for (std::int64_t c = 0; c < planes.channels; ++c) {
      const float scale = pass.scale[c];
      T* const grad_x = pass.grad_x + place.at + c * planes.inner;
      for (int p = 0; p < place.pixels; ++p) {
        const std::int64_t at = c * planes.inner + p;
        grad_x[p] = from_float<T>(inverse[p] *
                                  (to_float(grad_y[at]) * scale - share[p] - (to_float(x[at]) - mean[p]) * slope[p]));
      }
    }
  }
};

// What a number adds to the gradients of its channel's bias and scale.
template <class T>
struct FactorTerms {
  BatchShape planes;
  Divisor channels;
  const float *mean, *inverse;
  const T *x, *grad_y;
  struct Row {
    const float *mean, *inverse;
    const T *x, *grad_y;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t column) const {
      const float g = to_float(grad_y[column]);
      return {g, g * (to_float(x[column]) - mean[column]) * inverse[column]};
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t first = row * planes.inner, pixel = channels.quotient(row) * planes.inner;
    return {mean + pixel, inverse + pixel, x + first, grad_y + first};
  }
};

template <class T>
void run(Stream& stream, const PixelForward<T>& pass) {
  if (on_gpu(stream) && normalize_pixels_in_blocks(stream, pass)) return;
  const Strips strips(pass.planes);
  for_each_index(stream, strips.count(pass.planes), ForwardStrip<T>{pass, strips}, 6 * strip * pass.planes.channels);
}

template <class T>
void run(Stream& stream, const PixelBackward<T>& pass) {
  if (on_gpu(stream) && normalize_pixels_backward_in_blocks(stream, pass)) return;
  const Strips strips(pass.planes);
  for_each_index(stream, strips.count(pass.planes), BackwardStrip<T>{pass, strips}, 8 * strip * pass.planes.channels);
}

// What the backward pass needs of the forward pass.
struct NormalizedPixels {
  BatchShape planes;
  Tensor x, mean, inverse;
};

Tensor pixels_gradient(Stream& stream, const NormalizedPixels& all, const Tensor& scale, const Tensor& grad_y) {
  Tensor grad_x(stream, all.x.shape(), all.x.type());
  with_type(grad_x.type(), [&](auto t) {
    using T = decltype(t);
    run(stream, PixelBackward<T>{all.planes, all.mean.read(), all.inverse.read(), scale.read(), all.x.read<T>(),
                                 grad_y.read<T>(), grad_x.write<T>()});
  });
  return grad_x;
}

// The gradients of bias and scale.
std::array<Tensor, 2> factor_gradients(Stream& stream, const NormalizedPixels& all, const Tensor& grad_y) {
  return with_type(grad_y.type(), [&](auto t) {
    using T = decltype(t);
    return sum_pairs_by_channel(stream, all.planes,
                                FactorTerms<T>{all.planes, Divisor(all.planes.channels), all.mean.read(),
                                               all.inverse.read(), all.x.read<T>(), grad_y.read<T>()});
  });
}

}  // namespace

Variable normalize_pixels(Context& ctx, const std::string& name, const Variable& x, float epsilon,
                          const Variable& scale, const Variable& bias) {
  const Tensor value = x.value();
  const BatchShape planes = batch_shape_of(value);
  Stream& stream = *ctx.stream;
  NormalizedPixels all{planes, value, Tensor(stream, {planes.values()}), Tensor(stream, {planes.values()})};
  Tensor y(stream, value.shape(), value.type());
  with_type(y.type(), [&](auto t) {
    using T = decltype(t);
    run(stream, PixelForward<T>{planes, epsilon, value.read<T>(), scale.value().read(), bias.value().read(),
                                all.mean.write(), all.inverse.write(), y.write<T>()});
  });
  return ctx.tape.record(name, y, {x, scale, bias}, [x, all, scale, bias](Context& backward_ctx, const Tensor& grad_y) {
    Stream& back = *backward_ctx.stream;
    if (x.needs_grad()) x.add_grad(backward_ctx, pixels_gradient(back, all, scale.value(), grad_y));
    if (!scale.needs_grad() && !bias.needs_grad()) return;
    const auto [grad_bias, grad_scale] = factor_gradients(back, all, grad_y);
    scale.add_grad(backward_ctx, grad_scale);
    bias.add_grad(backward_ctx, grad_bias);
  });
}

}  // namespace twiddle
