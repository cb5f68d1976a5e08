#include "framework/running_mean.h"

#include "framework/error.h"
#include "framework/optimizers/update_parameters.h"

namespace twiddle {

namespace {

struct MeanRule : UpdateRule {
  TWIDDLE_HD void operator()(float value, float& mean, float*) const {
    mean = rate == 1 ? value : mean + rate * (value - mean);
  }
};

}  // namespace

void move_means(Stream& stream, const std::vector<Tensor>& values, std::vector<Tensor>& means,
                const StepNumbers& numbers) {
  require(values.size() == means.size(), "each value has a mean");
  std::vector<Update<MeanRule>> updates;
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(values[i].shape() == means[i].shape(), "a mean ", to_string(means[i].shape()), " of values ",
            to_string(values[i].shape()));
    updates.push_back({MeanRule{}, values[i].size(), values[i].read(), means[i].write(), {}});
  }
  update_parameters(stream, updates, numbers);
}

}  // namespace twiddle
