#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "framework/convolution.h"
#include "layers/layer.h"

namespace twiddle {

// A layer's convolution, as it runs and as tools see it: the problem, the engine that the config names for it, and the
// plans that the tuner chose. A transposed one runs a convolution's passes with other meanings: it goes forward by the
// pass that gives a convolution the gradient of its input, and gets its own by the forward pass.
class TunedConvolution {
 public:
  enum class Direction : std::uint8_t { plain, transposed };

  TunedConvolution(const Site& site, std::string kind, Direction direction);
  // The problem of one image, which the layer has validated, an engine's name or nothing, and the weight, which needs
  // no gradient where it is frozen.
  void define(const ConvProblem& problem, std::string engine, const Parameter& weight);
  void do_relu() { problem_.relu = true; }  // plans are timed with it

  const std::string& layer() const { return layer_; }
  bool transposed() const { return direction_ == Direction::transposed; }
  const ConvProblem& of_one_image() const { return problem_; }
  // The problem of `batch` images. Throws if it is invalid, with the layer's kind first.
  ConvProblem problem(std::int64_t batch) const;
  const std::string& engine() const { return engine_; }  // empty: as the policy says
  ConvTuner& tuner() const { return tuner_; }

  // Which pass of the problem a pass of the layer is, and whether training has a use for the layer's.
  ConvPass pass_for(ConvPass of_layer) const;
  bool in_training(ConvPass of_layer) const;
  // The first call for each batch size calls the tuner.
  const ConvPlan& plan(Context& ctx, const ConvProblem& here, ConvPass of_layer);

 private:
  using Plan = std::shared_ptr<const ConvPlan>;
  std::string layer_, kind_;
  Direction direction_;
  bool input_gradient_;
  ConvTuner& tuner_;
  ConvProblem problem_;
  std::string engine_;
  const Parameter* weight_ = nullptr;
  std::map<std::pair<int, bool>, std::array<Plan, 3>> plans_;  // of a batch size, in training or not
};

}  // namespace twiddle
