#include "layers/planes.h"

#include "framework/config/params.h"
#include "framework/error.h"

namespace twiddle {

BatchShape batch_shape_of(const Tensor& x) {
  return {x.dim(0), x.dim(1), count_of({x.shape().begin() + 2, x.shape().end()})};
}

void require_channels(const Site& site, const Params& params) {
  if (site.input.empty())
    throw Error(ErrorKind::config, join(params.owner(), " needs an input with channels, and gets a scalar"));
}

void require_planes(const Site& site, const Params& params) {
  if (site.input.size() != 3)
    throw Error(ErrorKind::config, join(params.owner(), " needs an input channels x height x width, and gets ",
                                        to_string(site.input), "; put it before any flatten or linear"));
}

Parameter undecayed(std::string name, Shape shape, double start) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.shape = std::move(shape);
  parameter.initializer = {Initializer::Kind::constant, start};
  parameter.weight_decay = false;
  return parameter;
}

}  // namespace twiddle
