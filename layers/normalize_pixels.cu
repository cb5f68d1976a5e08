#include "layers/normalize_pixels.h"

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

struct ForwardStrip {
  PixelForward pass;
  Strips strips;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const BatchShape& planes = pass.planes;
    const Strips::Place place = strips.place(planes, i);
    const auto channels = static_cast<float>(planes.channels);
    const float* const x = pass.x + place.at;
    float sums[strip] = {}, squares[strip] = {}, mean[strip], inverse[strip];
    // What the numbers differ from a pixel's first adds up without losing digits far from zero.
    for (std::int64_t c = 0; c < planes.channels; ++c)
      for (int p = 0; p < place.pixels; ++p) sums[p] += x[c * planes.inner + p] - x[p];
    for (int p = 0; p < place.pixels; ++p) mean[p] = x[p] + sums[p] / channels;
    for (std::int64_t c = 0; c < planes.channels; ++c)
      for (int p = 0; p < place.pixels; ++p) {
        const float difference = x[c * planes.inner + p] - mean[p];
        squares[p] += difference * difference;
      }
    for (int p = 0; p < place.pixels; ++p) inverse[p] = inverse_deviation(squares[p] / channels, pass.epsilon);
    for (std::int64_t c = 0; c < planes.channels; ++c) {
      const float scale = pass.scale[c], bias = pass.bias[c];
      float* const y = pass.y + place.at + c * planes.inner;
      for (int p = 0; p < place.pixels; ++p) y[p] = (x[c * planes.inner + p] - mean[p]) * inverse[p] * scale + bias;
    }
    for (int p = 0; p < place.pixels; ++p) {
      pass.mean[place.pixel + p] = mean[p];
      pass.inverse[place.pixel + p] = inverse[p];
    }
  }
};

// grad_x = (g - mean(g) - x' mean(g x')) / deviation: g = scale grad_y, x' the normalised x, the means over a pixel.
struct BackwardStrip {
  PixelBackward pass;
  Strips strips;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const BatchShape& planes = pass.planes;
    const Strips::Place place = strips.place(planes, i);
    const auto channels = static_cast<float>(planes.channels);
    const float *const x = pass.x + place.at, *const grad_y = pass.grad_y + place.at;
    float share[strip] = {}, slope[strip] = {}, mean[strip], inverse[strip];
    for (int p = 0; p < place.pixels; ++p) {
      mean[p] = pass.mean[place.pixel + p];
      inverse[p] = pass.inverse[place.pixel + p];
    }
    for (std::int64_t c = 0; c < planes.channels; ++c) {
      const float scale = pass.scale[c];
      for (int p = 0; p < place.pixels; ++p) {
        const float g = grad_y[c * planes.inner + p] * scale;
        share[p] += g;
        slope[p] += g * (x[c * planes.inner + p] - mean[p]);
      }
    }
    for (int p = 0; p < place.pixels; ++p) {
      share[p] /= channels;
      slope[p] *= inverse[p] * inverse[p] / channels;
    }
    for (std::int64_t c = 0; c < planes.channels; ++c) {
      const float scale = pass.scale[c];
      float* const grad_x = pass.grad_x + place.at + c * planes.inner;
      for (int p = 0; p < place.pixels; ++p) {
        const std::int64_t at = c * planes.inner + p;
        grad_x[p] = inverse[p] * (grad_y[at] * scale - share[p] - (x[at] - mean[p]) * slope[p]);
      }
    }
  }
};

// What a number adds to the gradients of its channel's bias and scale.
struct FactorTerms {
  BatchShape planes;
  Divisor channels;
  const float *x, *mean, *inverse, *grad_y;
  struct Row {
    const float *x, *mean, *inverse, *grad_y;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t column) const {
      const float g = grad_y[column];
      return {g, g * (x[column] - mean[column]) * inverse[column]};
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t first = row * planes.inner, pixel = channels.quotient(row) * planes.inner;
    return {x + first, mean + pixel, inverse + pixel, grad_y + first};
  }
};

void run(Stream& stream, const PixelForward& pass) {
  if (on_gpu(stream) && normalize_pixels_in_blocks(stream, pass)) return;
  const Strips strips(pass.planes);
  for_each_index(stream, strips.count(pass.planes), ForwardStrip{pass, strips}, 6 * strip * pass.planes.channels);
}

void run(Stream& stream, const PixelBackward& pass) {
  if (on_gpu(stream) && normalize_pixels_backward_in_blocks(stream, pass)) return;
  const Strips strips(pass.planes);
  for_each_index(stream, strips.count(pass.planes), BackwardStrip{pass, strips}, 8 * strip * pass.planes.channels);
}

}  // namespace

Variable normalize_pixels(Context& ctx, const std::string& name, const Variable& x, float epsilon,
                          const Variable& scale, const Variable& bias) {
  const Tensor value = x.value();
  const BatchShape planes = batch_shape_of(value);
  Tensor mean(*ctx.stream, {planes.values()}), inverse(*ctx.stream, {planes.values()}), y(*ctx.stream, value.shape());
  run(*ctx.stream, PixelForward{planes, epsilon, value.read(), scale.value().read(), bias.value().read(), mean.write(),
                                inverse.write(), y.write()});
  return ctx.tape.record(
      name, y, {x, scale, bias},
      [x, value, mean, inverse, scale, bias, planes](Context& backward_ctx, const Tensor& grad_y) {
        Stream& stream = *backward_ctx.stream;
        if (x.needs_grad()) {
          Tensor grad_x(stream, value.shape());
          run(stream, PixelBackward{planes, value.read(), mean.read(), inverse.read(), scale.value().read(),
                                    grad_y.read(), grad_x.write()});
          x.add_grad(backward_ctx, grad_x);
        }
        if (!scale.needs_grad() && !bias.needs_grad()) return;
        const auto [grad_bias, grad_scale] = sum_pairs_by_channel(
            stream, planes,
            FactorTerms{planes, Divisor(planes.channels), value.read(), mean.read(), inverse.read(), grad_y.read()});
        scale.add_grad(backward_ctx, grad_scale);
        bias.add_grad(backward_ctx, grad_bias);
      });
}

}  // namespace twiddle
