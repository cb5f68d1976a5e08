#include "layers/layer.h"

#include "framework/error.h"

namespace twiddle {

Variable Layer::forward_with_sum(Context&, const Variable&, const Variable&) {
  throw Error(join("layer '", name_, "' adds nothing to its output"));
}

Parameter& Layer::add_parameter(Parameter parameter) {
  parameter.name = name_ + "." + parameter.name;
  if (!parameter.trainable) parameter.keep_from_training();
  return parameters_.emplace_back(std::move(parameter));
}

}  // namespace twiddle
