#include "layers/layer_norm.h"

#include "framework/config/params.h"
#include "layers/normalize_groups.h"
#include "layers/normalize_pixels.h"

namespace twiddle {

namespace {

// The whole of each image as one group. A row of features is one plane.
NormGroups whole_images(const BatchShape& planes, float epsilon) {
  const BatchShape filled = planes.inner == 1 ? BatchShape{planes.batch, 1, planes.channels} : planes;
  return {filled, filled.channels, true, epsilon};
}

}  // namespace

LayerNorm::LayerNorm(const Site& site, Params& params)
    : Layer(site.name, site.input),
      over_channels_(params.choice("over", "channels", {"channels", "all"}) == "channels"),
      epsilon_(static_cast<float>(params.number("epsilon", 1e-5, 1e-12, 1))) {
  require_channels(site, params);
  const Shape shape = over_channels_ ? Shape{site.input[0]} : site.input;
  scale_ = &add_parameter(undecayed("scale", shape, 1));
  bias_ = &add_parameter(undecayed("bias", shape, 0));
}

std::size_t LayerNorm::kept_bytes() const {  // mean and 1 / deviation of each pixel
  const std::int64_t pixels = over_channels_ ? count_of(output_shape()) / output_shape()[0] : 1;
  return static_cast<std::size_t>(pixels) * 2 * sizeof(float);
}

Variable LayerNorm::forward(Context& ctx, const Variable& x) {
  const BatchShape planes = batch_shape_of(x.value());
  if (over_channels_ && planes.inner > 1)
    return normalize_pixels(ctx, name(), x, epsilon_, scale_->variable, bias_->variable);
  return normalize_groups(ctx, name(), x, whole_images(planes, epsilon_), scale_->variable, bias_->variable);
}

}  // namespace twiddle
