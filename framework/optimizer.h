#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/context.h"
#include "framework/parameter.h"
#include "framework/params.h"
#include "framework/registry.h"

namespace twiddle {

// Turns gradients into new values. Keeps its state (momentum, moments) by parameter name.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string describe() const = 0;  // "sgd momentum 0.9 weight decay 5e-4"
  // One update of every trainable parameter that has a gradient; `rate` is the schedule's learning rate for this step.
  virtual void step(Context& ctx, std::vector<Parameter*>& parameters, double rate) = 0;
  // State for a checkpoint: tensors by name, and numbers such as Adam's step count.
  virtual std::vector<std::pair<std::string, Tensor>> state() const = 0;
  virtual void restore(
      const std::vector<std::pair<std::string, Tensor>>& state) = 0;  // throws where a name or shape does not fit
  virtual int state_tensors() const = 0;  // per parameter: 1 for momentum, 2 for Adam; the memory plan needs it
};

using OptimizerRegistry = Registry<Optimizer, Params&>;
OptimizerRegistry builtin_optimizers();  // sgd, adam, adamw

// Scales all gradients so that their common L2 norm is at most `limit`. Returns the norm as a one-element tensor.
Tensor clip_gradients(Context& ctx, std::vector<Parameter*>& parameters, double limit);

}  // namespace twiddle
