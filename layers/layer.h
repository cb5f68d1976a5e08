#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/registry.h"
#include "framework/context.h"
#include "framework/parameter.h"

namespace twiddle {

class Params;

class ConvTuner;
class Sequential;
class TunedConvolution;

// Where a layer is being built: its name, the shape of one image that reaches it (no batch axis), the tuner of
// its convolutions, and whether training needs its input's gradient (not if no earlier layer is trained).
struct Site {
  std::string name;
  Shape input;
  ConvTuner& convolutions;
  bool input_gradient = true;
};

// Turns a variable [batch, input...] into a variable [batch, output...]. A layer's constructor takes (const Site&,
// Params&), reads all of its options and only then throws an Error where the input shape is impossible; it allocates
// nothing.
class Layer {
 public:
  Layer(std::string name, Shape output) : name_(std::move(name)), output_(std::move(output)) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  virtual Variable forward(Context& ctx, const Variable& x) = 0;
  // Whether forward() has to run on a batch of 0 rows; if not, Sequential skips the layer.
  virtual bool runs_without_rows() const { return false; }
  virtual double flops() const { return 0; }  // of one image's forward pass, where they count
  // What the forward pass leaves for the backward one, as the memory plan counts it: tensors that the closure captured.
  virtual bool keeps_input() const { return false; }
  virtual bool keeps_output() const { return false; }
  virtual std::size_t kept_bytes() const { return 0; }  // per image, without input and output
  virtual bool shares_input() const { return false; }   // the output is the input's storage: flatten
  // Whether both passes also read and write bf16 and f16: the output and the input's gradient have x's type. If not, as
  // in a layer written for f32 alone, Sequential casts before and after them.
  virtual bool takes_16_bits() const { return false; }
  // Called if a ReLU follows. Returns true if the layer computes max(y, 0) itself from now on, which saves a pass.
  virtual bool take_over_relu() { return false; }
  // Called on the last layer of a path whose output is added to another path's. Returns true if the layer adds that
  // output itself from now on, in the pass that writes its result. It then runs by forward_with_sum.
  virtual bool take_over_sum() { return false; }
  virtual Variable forward_with_sum(Context& ctx, const Variable& x, const Variable& other);
  // Called on each layer after its predecessor `before`: the layer may leave its work to that one.
  virtual void leave_work_to(Layer& /*before*/) {}
  // The layers inside a layer that joins paths; empty for all others.
  virtual std::vector<const Sequential*> paths() const { return {}; }
  // Its convolutions, to plan their memory and to show their plans. A linear layer has one.
  virtual std::vector<const TunedConvolution*> convolutions() const { return {}; }
  virtual std::string describe() const { return {}; }  // "11x11, stride 4, pad 2"

  const std::string& name() const { return name_; }
  const Shape& output_shape() const { return output_; }  // of one image, without the batch axis
  DType output_type() const { return output_type_; }
  void set_output_type(DType type) { output_type_ = type; }
  std::deque<Parameter>& parameters() { return parameters_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }

 protected:
  void set_output_shape(Shape shape) { output_ = std::move(shape); }
  Parameter& add_parameter(Parameter parameter);  // its name becomes "<layer>.<name>"; the reference stays valid

 private:
  std::string name_;
  Shape output_;
  DType output_type_ = DType::f32;
  std::deque<Parameter> parameters_;
};

using LayerRegistry = Registry<Layer, const Site&, Params&>;
LayerRegistry builtin_layers();  // builtin.cpp: one line per layer

}  // namespace twiddle
