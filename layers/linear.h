#pragma once
#include "framework/convolution.h"
#include "layers/layer.h"

namespace twiddle {

// y = weight x + bias; takes an input of any shape as a row of numbers. Options: outputs, bias, init, bias_init, inputs
// (checked where given), lr and bias_lr (multipliers of the learning rate).
class Linear : public Layer {
 public:
  Linear(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return relu_; }
  bool take_over_relu() override { return relu_ = true; }
  std::size_t scratch_bytes(const Device& device, std::int64_t batch) const override;
  double flops() const override { return 2.0 * static_cast<double>(inputs_) * static_cast<double>(outputs_); }
  std::string describe() const override;

 private:
  Gemm product(ConvPass pass, std::int64_t batch) const;
  void backward(Context& ctx, const Variable& x, const Tensor& value, const Tensor& output, Tensor grad_y) const;

  std::int64_t inputs_, outputs_;
  bool tf32_;                    // products in tf32
  bool input_gradient_;          // whether training needs it
  bool relu_ = false;            // what is below zero becomes 0
  Parameter* weight_ = nullptr;  // [outputs, inputs]
  Parameter* bias_ = nullptr;    // null: none
};

}  // namespace twiddle
