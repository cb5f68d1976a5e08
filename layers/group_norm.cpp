#include "layers/group_norm.h"

#include "framework/config/params.h"
#include "framework/error.h"
#include "layers/normalize_groups.h"

namespace twiddle {

GroupNorm::GroupNorm(const Site& site, Params& params)
    : Layer(site.name, site.input),
      groups_(params.integer("groups", 32, 1, 1 << 20)),
      epsilon_(static_cast<float>(params.number("epsilon", 1e-5, 1e-12, 1))) {
  require_channels(site, params);
  if (site.input[0] % groups_ != 0)
    throw Error(ErrorKind::config,
                join(params.owner(), " cannot divide the ", site.input[0], " channels of ", to_string(site.input),
                     " into ", groups_, " groups: 'groups' must divide them"));
  scale_ = &add_parameter(undecayed("scale", {site.input[0]}, 1));
  bias_ = &add_parameter(undecayed("bias", {site.input[0]}, 0));
}

std::size_t GroupNorm::kept_bytes() const {  // mean and 1 / deviation of each group
  return static_cast<std::size_t>(groups_) * 2 * sizeof(float);
}

std::string GroupNorm::describe() const {
  return join(groups_, " groups");
}

Variable GroupNorm::forward(Context& ctx, const Variable& x) {
  const BatchShape planes = batch_shape_of(x.value());
  return normalize_groups(ctx, name(), x, {planes, planes.channels / groups_, false, epsilon_}, scale_->variable,
                          bias_->variable);
}

}  // namespace twiddle
