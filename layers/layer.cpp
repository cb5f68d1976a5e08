#include "layers/layer.h"

namespace twiddle {

Parameter& Layer::add_parameter(Parameter parameter) {
  parameter.name = name_ + "." + parameter.name;
  if (!parameter.trainable) parameter.keep_from_training();
  return parameters_.emplace_back(std::move(parameter));
}

}  // namespace twiddle
