#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "framework/convolution.h"
#include "layers/layer.h"

namespace twiddle {

// A convolution with bias: x [batch, channels, height, width] to [batch, filters, out_h, out_w].
class Conv2d : public Layer {
 public:
  Conv2d(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  double flops() const override { return problem_.flops(); }
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return problem_.relu; }
  bool take_over_relu() override { return problem_.relu = true; }
  std::vector<const Conv2d*> convolutions() const override { return {this}; }
  std::string describe() const override;

  ConvProblem problem(std::int64_t batch) const;         // checked
  const std::string& engine() const { return engine_; }  // empty: as the policy says
  ConvTuner& tuner() const { return tuner_; }

 private:
  using Plan = std::shared_ptr<const ConvPlan>;
  const ConvPlan& plan(Context& ctx, const ConvProblem& here, ConvPass pass);
  // `input` is x's value, which x itself may have dropped by then; `output` is defined where the ReLU is done here.
  void backward(Context& ctx, const ConvProblem& here, const Variable& x, const Tensor& input, const Tensor& output,
                Tensor grad_y);
  ConvProblem problem_;  // of one image; with relu where what follows is a ReLU, which is done here
  std::string engine_;
  ConvTuner& tuner_;
  std::map<std::pair<int, bool>, std::array<Plan, 3>> plans_;  // of a batch size, in training or not
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;  // null without bias
};

}  // namespace twiddle
