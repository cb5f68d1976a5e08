#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/registry.h"
#include "framework/tensor.h"

namespace twiddle {

class Communicator;
class Params;
struct Context;
struct Parameter;

// An optimizer's memory: tensors by name, zero at first.
class OptimizerState {
 public:
  Tensor& at(Stream& stream, const std::string& name, const Shape& shape);
  std::vector<std::pair<std::string, Tensor>> list() const;
  void restore(const std::vector<std::pair<std::string, Tensor>>& state);

 private:
  std::map<std::string, Tensor> tensors_;
};

// A step's inputs to the optimizer, one number each, on the stream's device: a captured step reads them again at each
// replay. No update reads what it writes, so that which elements it changes does not depend on the order of threads or
// launches. Between two updates, StepInputs adds `found_bad` to the guard.
struct StepNumbers {
  Tensor rate;  // the schedule's learning rate for this step
  // If defined, no weight and no state becomes a number that is not finite. Both are defined or neither is.
  Tensor guard = {};      // read: if its first element (the sum of the losses) is not finite, the step changes nothing
  Tensor found_bad = {};  // written: NaN if an element kept its old values because its new ones were not finite
  Tensor factor = {};     // if defined, the update multiplies gradients by it
};

// Turns gradients into new values. Keeps its state (momentum, moments) by parameter name.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string kind() const = 0;      // "sgd": the name in the registry
  virtual std::string describe() const = 0;  // "sgd momentum 0.9, weight decay 5e-4"
  // One update of every trainable parameter that has a gradient.
  virtual void step(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) = 0;
  // What it keeps of each parameter, as large as that: "momentum", or "mean" and "square".
  virtual std::vector<std::string> state_names() const = 0;
  int state_tensors() const { return static_cast<int>(state_names().size()); }
  // Allocates the state before the first step. Allocated within a step, it would split blocks that the step left
  // unused, and these could never be freed.
  void prepare(Stream& stream, const std::vector<Parameter*>& parameters);

  std::vector<std::pair<std::string, Tensor>> state() const { return state_.list(); }  // for a checkpoint
  void restore(const std::vector<std::pair<std::string, Tensor>>& state) { state_.restore(state); }

 protected:
  Tensor& state_of(Stream& stream, const std::string& name, const Parameter& parameter);
  OptimizerState state_;
};

// What a checkpoint keeps of an optimizer.
struct SavedOptimizer {
  std::string kind;
  std::vector<std::pair<std::string, Tensor>> state;
  SavedOptimizer(const Optimizer& optimizer) : SavedOptimizer(optimizer, optimizer.state()) {}
  SavedOptimizer(const Optimizer& optimizer, std::vector<std::pair<std::string, Tensor>> whole_state)
      : kind(optimizer.kind()), state(std::move(whole_state)) {}
};

using OptimizerRegistry = Registry<Optimizer, Params&>;
OptimizerRegistry builtin_optimizers();  // optimizers.cu

// The L2 norm of all gradients, one element: not finite if and only if one of them is not. With ranks, each has a share
// of the gradients, and the norm is that of all shares.
Tensor gradient_norm(Stream& stream, const std::vector<Parameter*>& parameters, Communicator* ranks = nullptr);

}  // namespace twiddle
