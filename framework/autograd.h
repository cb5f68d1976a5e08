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
  // From now on its gradient lies there, whoever makes it; undefined: where it is made.
  void set_grad_place(Tensor place) const;
  // A use that contributes to its gradient, until that is dropped; and whether there is one: its gradient may still
  // grow.
  std::shared_ptr<void> begin_use() const;
  bool is_in_use() const;
  // Memory for who makes its gradient: that place, which saves a copy, or a new tensor of the value's shape.
  Tensor new_grad(Stream& stream) const;
  // Lets go of the value while the gradient's place stays: backward closures that need the value hold a Tensor of their
  // own, so an activation that nobody captured is freed as soon as the next layer has read it.
  void drop_value() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The forward pass recorded in order, and run backwards by backward().
class Tape {
 public:
  using Backward = std::function<void(Context&, const Tensor& grad_output)>;

  // The result of an op, and how its gradient flows to the inputs. The name is that of the layer: profiles and errors
  // show it. Nothing is kept where no input needs a gradient; then `backward` is dropped and what it captured is freed.
  Variable record(std::string name, Tensor output, const std::vector<Variable>& inputs, Backward backward);

  // Newest first, from d loss / d loss = 1, or from the factor that is given (both have one element). A record that has
  // run is dropped, and with it its activations. `behind_each` is called behind each of them: the gradients of what no
  // other one uses are complete from then on.
  void backward(Context& ctx, const Variable& loss, Tensor factor = {}, const std::function<void()>& behind_each = {});

  // While off, nothing is recorded: evaluation.
  void set_recording(bool on) { recording_ = on; }
  bool recording() const { return recording_; }

  void clear();  // forgets everything recorded
  bool empty() const { return records_.empty(); }

 private:
  struct Record {
    std::string name;
    Variable output;
    std::vector<std::shared_ptr<void>> uses;  // of inputs
    Backward backward;
  };
  bool run_newest(Context& ctx);  // false: the loss does not depend on it
  std::vector<Record> records_;
  bool recording_ = true;
};

}  // namespace twiddle
