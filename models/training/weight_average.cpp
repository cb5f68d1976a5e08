#include "models/training/weight_average.h"

#include <algorithm>
#include <utility>

#include "framework/error.h"
#include "framework/parameter.h"
#include "framework/running_mean.h"
#include "layers/sequential.h"

namespace twiddle {

WeightAverage::WeightAverage(Stream& stream, const Sequential& net, double decay, bool warms_up)
    : parameters_(net.parameters()), decay_(decay), warms_up_(warms_up) {
  for (const Parameter* parameter : parameters_) averages_.push_back(Tensor::filled(stream, parameter->shape, 0));
}

void WeightAverage::update(Stream& stream, const StepNumbers& share) {
  std::vector<Tensor> weights;
  for (const Parameter* parameter : parameters_) weights.push_back(parameter->variable.value());
  move_means(stream, weights, averages_, share);
}

double WeightAverage::next_share() const {
  if (!begun_) return 1;
  const auto next = static_cast<double>(updates_ + 1);
  return 1 - (warms_up_ ? std::min(decay_, (1 + next) / (10 + next)) : decay_);
}

void WeightAverage::restore(std::vector<Tensor> averages) {
  require(averages.size() == averages_.size(), "an average has a tensor for each parameter");
  averages_ = std::move(averages);
  begun_ = true;
}

// A captured step has changed both since their versions were last read.
void WeightAverage::exchange() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::swap(parameters_[i]->variable.value(), averages_[i]);
    parameters_[i]->variable.value().write();
  }
}

}  // namespace twiddle
