#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/tensor.h"

namespace twiddle {

struct Context;

// A value that the tape may differentiate: a shared handle to a tensor and its gradient.
class Variable {
 public:
  explicit Variable(Tensor value = {}, bool needs_grad = false);
  Tensor& value() const;
  Tensor& grad() const;  // undefined until backward reaches it
  bool needs_grad() const;
  void add_grad(Context& ctx,
                Tensor grad) const;  // keeps the first, adds later ones out of place; ignored without needs_grad
  void clear_grad() const;
  // Sets the memory that holds its gradients from now on; undefined: each stays in the memory it was computed in.
  void set_grad_buffer(Tensor buffer) const;
  // Memory to compute a gradient in: the buffer, if it is free, which saves a copy; else a new tensor.
  Tensor new_grad(Stream& stream) const;
  // Releases the value and keeps the gradient: backward closures that need the value hold a separate Tensor handle, so
  // an activation that no closure captured is freed as soon as the next layer has read it.
  void drop_value() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Callbacks during forward and backward passes, for work on parameters that overlaps with them.
class TapeHooks {
 public:
  virtual ~TapeHooks() = default;
  virtual void before_read(const Variable& parameter) = 0;       // before the forward pass of its layer
  virtual void gradient_complete(const Variable& variable) = 0;  // backward() adds no more to its gradient
};

// Records the forward pass in order. backward() runs the records in reverse.
class Tape {
 public:
  using Backward = std::function<void(Context&, const Tensor& grad_output)>;

  void set_hooks(TapeHooks* hooks) { hooks_ = hooks; }  // null: none
  void before_read(const Variable& parameter) const {
    if (hooks_ != nullptr) hooks_->before_read(parameter);
  }

  // Records the result of an op and how its gradient flows to the inputs. `name` is the layer's name in profiles and
  // errors. If no input needs a gradient, nothing is recorded and what `backward` captured is freed.
  Variable record(std::string name, Tensor output, const std::vector<Variable>& inputs, Backward backward);

  // Runs the records, newest first, from d loss / d loss = 1, or from `factor` if it is given (both have one element).
  // A record is dropped after it has run, together with its activations.
  void backward(Context& ctx, const Variable& loss, Tensor factor = {});

  // While off, nothing is recorded: evaluation.
  void set_recording(bool on) { recording_ = on; }
  bool recording() const { return recording_; }

  void clear();  // forgets everything recorded
  bool empty() const { return records_.empty(); }

 private:
  struct Record {
    std::string name;
    Variable output;
    std::vector<Variable> inputs;  // that need a gradient
    Backward backward;
  };
  void run_newest(Context& ctx);
  std::vector<Record> records_;
  TapeHooks* hooks_ = nullptr;
  bool recording_ = true;
};

}  // namespace twiddle
