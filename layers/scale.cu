#include "layers/scale.h"

#include "framework/config/params.h"
#include "layers/map_by_channel.h"

namespace twiddle {

namespace {

struct ScaleFunction {
  TWIDDLE_HD float forward(float scale, float x) const { return x * scale; }
  TWIDDLE_HD float backward(float scale, float, float grad_y) const { return grad_y * scale; }
  TWIDDLE_HD float backward_parameter(float, float x, float grad_y) const { return x * grad_y; }
};

}  // namespace

Scale::Scale(const Site& site, Params& params) : Layer(site.name, site.input) {
  const double start = params.number("init", 1, -1e6, 1e6);
  require_channels(site, params);
  scale_ = &add_parameter(undecayed("scale", {site.input[0]}, start));
}

Variable Scale::forward(Context& ctx, const Variable& x) {
  return map_by_channel(ctx, name(), x, scale_->variable, ScaleFunction{}, 1);
}

}  // namespace twiddle
