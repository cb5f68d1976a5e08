#include "layers/prelu.h"

#include "framework/config/params.h"
#include "layers/map_by_channel.h"

namespace twiddle {

namespace {

struct PReluFunction {
  TWIDDLE_HD float forward(float slope, float x) const { return (x > 0 ? 1 : slope) * x; }
  TWIDDLE_HD float backward(float slope, float x, float grad_y) const { return (x > 0 ? 1 : slope) * grad_y; }
  TWIDDLE_HD float backward_parameter(float, float x, float grad_y) const { return x > 0 ? 0 : x * grad_y; }
};

}  // namespace

PRelu::PRelu(const Site& site, Params& params) : Layer(site.name, site.input) {
  const double start = params.number("init", 0.25, -1e3, 1e3);
  require_channels(site, params);
  slope_ = &add_parameter(undecayed("slope", {site.input[0]}, start));
}

Variable PRelu::forward(Context& ctx, const Variable& x) {
  return map_by_channel(ctx, name(), x, slope_->variable, PReluFunction{}, 1);
}

}  // namespace twiddle
