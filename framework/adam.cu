#include "framework/adam.h"

#include <algorithm>
#include <cmath>

#include "framework/text.h"
#include "framework/update_parameters.h"

namespace twiddle {

namespace {

struct AdamRule {
  static constexpr int states = 2, divisors = 1;
  float rate, beta1, beta2, epsilon, joined_decay, own_decay;  // own_decay: where it is decoupled from the gradient
  const float* corrections;                                    // 1 - beta1^t, sqrt(1 - beta2^t)
  float kept_weight, root_correction2;                         // of the step

  TWIDDLE_HD AdamRule at(float step_rate) const {
    AdamRule now = *this;
    now.rate = step_rate * rate / corrections[0];
    now.kept_weight = 1 - step_rate * rate * own_decay;
    now.root_correction2 = corrections[1];
    return now;
  }
  TWIDDLE_HD void operator()(float grad, float& weight, float* state) const {
    const float g = grad + joined_decay * weight;
    float &mean = state[0], &square = state[1];
    mean = beta1 * mean + (1 - beta1) * g;
    square = beta2 * square + (1 - beta2) * g * g;
    weight = kept_weight * weight - rate * mean / (sqrtf(square) / root_correction2 + epsilon);
  }
};

// Counts a step of each parameter, so that one without a gradient for a while is corrected rightly. On the device,
// where a captured step counts on. Exact up to 2^24 steps.
struct CountSteps {
  static constexpr int most = 128;
  StepPointers numbers;
  float beta1, beta2;  // rounded as the update's
  float* corrections;
  float* steps[most];
  TWIDDLE_HD void operator()(std::int64_t i) const {
    if (!numbers.passes()) return;
    const double t = *steps[i] += 1;
    corrections[2 * i] = static_cast<float>(1 - pow(double(beta1), t));
    corrections[2 * i + 1] = static_cast<float>(sqrt(1 - pow(double(beta2), t)));
  }
};

}  // namespace

Adam::Adam(Params& params, bool decoupled, double default_decay)
    : beta1_(params.number("beta1", 0.9, 0, 0.999999)),
      beta2_(params.number("beta2", 0.999, 0, 0.999999)),
      epsilon_(params.number("epsilon", 1e-8, 1e-20, 1)),
      weight_decay_(params.number("weight_decay", default_decay, 0, 1e3)),
      decoupled_(decoupled) {}

std::string Adam::describe() const {
  return join(kind(), " beta ", format_number(beta1_), ", ", format_number(beta2_),
              weight_decay_ > 0 ? ", weight decay " + format_number(weight_decay_) : "");
}

void Adam::step(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) {
  Stream& stream = *ctx.stream;
  std::vector<Parameter*> moving;
  for (Parameter* parameter : parameters)
    if (parameter->trainable && parameter->variable.grad().defined()) moving.push_back(parameter);

  const Tensor corrections = count_steps(stream, moving, numbers);
  std::vector<Update<AdamRule>> updates;
  for (Parameter* parameter : moving) {
    Tensor& weight = parameter->variable.value();
    Tensor& mean = state_of(stream, "mean", *parameter);
    Tensor& square = state_of(stream, "square", *parameter);
    const auto decay = static_cast<float>(parameter->weight_decay ? weight_decay_ : 0);
    AdamRule rule{};
    rule.rate = parameter->learning_rate;
    rule.beta1 = static_cast<float>(beta1_), rule.beta2 = static_cast<float>(beta2_);
    rule.epsilon = static_cast<float>(epsilon_);
    (decoupled_ ? rule.own_decay : rule.joined_decay) = decay;
    rule.corrections = corrections.read() + 2 * updates.size();
    updates.push_back(
        {rule, weight.size(), parameter->variable.grad().read(), weight.write(), {mean.write(), square.write()}});
  }
  update_parameters(stream, updates, numbers);
}

// The corrections of each parameter, [parameters, 2].
Tensor Adam::count_steps(Stream& stream, const std::vector<Parameter*>& parameters, const StepNumbers& numbers) {
  const auto count = static_cast<std::int64_t>(parameters.size());
  Tensor corrections(stream, {count, 2});
  std::vector<float*> steps;  // all are there before one is counted: if there is no memory, nothing has changed
  for (const Parameter* parameter : parameters)
    steps.push_back(state_.at(stream, "steps." + parameter->name, {1}).write());
  for (std::int64_t begin = 0; begin < count; begin += CountSteps::most) {
    CountSteps counting{StepPointers(numbers),
                        static_cast<float>(beta1_),
                        static_cast<float>(beta2_),
                        corrections.write() + 2 * begin,
                        {}};
    const std::int64_t here = std::min<std::int64_t>(CountSteps::most, count - begin);
    std::copy_n(steps.begin() + begin, here, counting.steps);
    for_each_index(stream, here, counting);
  }
  return corrections;
}

}  // namespace twiddle
