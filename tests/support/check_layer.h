#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/config/params.h"
#include "framework/context.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/layer.h"
#include "tests/support/check_close.h"
#include "tests/support/every_device.h"

namespace twiddle {

// A layer's options as in its line in the YAML: {{"kernel", "3"}, {"pad", "[1, 2]"}, {"rate", "0.5"}}.
using LayerOptions = std::vector<std::pair<std::string, std::string>>;
ConfigNode options_node(const LayerOptions& options);

// One layer called "layer", built as a model builds it, with its parameters initialised. `image` has no batch axis.
// Throws what the layer's constructor throws, and an Error of kind config for wrong or unknown options.
struct LayerUnderTest {
  LayerUnderTest(Device device, const std::string& kind, const LayerOptions& options, const Shape& image);

  Context ctx;
  ConvTuner convolutions;
  std::unique_ptr<Layer> layer;

  Parameter& parameter(const std::string& name);  // "weight"
  void set(const std::string& name, const std::vector<float>& values);
  std::vector<float> get(const std::string& name);
  std::vector<float> forward(const Shape& shape, const std::vector<float>& values);  // shape with the batch axis
  Shape output_shape(std::int64_t batch) const;
  struct Passes {
    std::vector<float> y, grad_x;
  };
  Passes forward_and_backward(const Shape& shape, const std::vector<float>& values, const std::vector<float>& grad_y);
};

// Returns small whole numbers, so that many are equal and sums are exact.
std::vector<float> whole_numbers(const Shape& shape, std::uint64_t seed);

// The gradients of a random sum of the layer's output: the input's and the parameters', in order of their names.
std::vector<float> gradients_of(LayerUnderTest& test, const Shape& shape, const std::vector<float>& values);

// The output of a new layer, in training mode; with its parameters as initialised.
std::vector<float> run_layer(Device device, const std::string& kind, const LayerOptions& options, const Shape& shape,
                             const std::vector<float>& values);

// Returns the layer's error message for an input or options; empty if it accepts them. `image` has no batch axis.
std::string layer_error(const std::string& kind, const LayerOptions& options, const Shape& image);

// Checks that a layer with frozen parameters computes the same input gradient and no parameter gradients.
void expect_same_input_gradient_where_frozen(Device device, const std::string& kind, const LayerOptions& options,
                                             const Shape& shape);

struct GradientCheck {
  float keep_away_from_zero = 0;  // inputs nearer to zero than this are moved out: a kink there is not crossed
  bool distinct = false;          // inputs differ by more than two steps: no maximum changes hands
  double step = 1e-2, tolerance = 5e-3;
  std::uint64_t seed = 1;
};

// Compares backward with central differences of forward, along random unit directions of the input and of each
// trainable parameter; `shape` includes the batch axis. On a GPU, also compares output and gradients with the CPU's.
void expect_gradients(Device device, const std::string& kind, const LayerOptions& options, const Shape& shape,
                      const GradientCheck& check = {});

}  // namespace twiddle
