#pragma once
#include <array>
#include <string>

#include "layers/conv/tuned_convolution.h"
#include "layers/layer.h"

namespace twiddle {

// The transposed convolution: x [batch, channels, height, width] to [batch, filters, out_h, out_w], where an output is
// (h - 1) stride - 2 pad + dilation (kernel - 1) + output_pad + 1 high. It is the gradient of a convolution that goes
// the other way, of y to x: that one's backward_input is this one's forward pass, so that every engine serves it. Its
// weight is [channels, filters / groups, kernel_h, kernel_w].
class ConvTranspose2d : public Layer {
 public:
  ConvTranspose2d(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& given) override;
  double flops() const override { return convolution_.of_one_image().flops(); }
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return relu_; }
  bool take_over_relu() override { return relu_ = true; }
  std::vector<const TunedConvolution*> convolutions() const override { return {&convolution_}; }
  std::string describe() const override;

 private:
  // `input` is x's value, which x itself may have dropped by then; `output` is defined where the ReLU is done here.
  void backward(Context& ctx, const ConvProblem& here, const Variable& x, const Tensor& input, const Tensor& output,
                Tensor grad_y);
  TunedConvolution convolution_;
  std::array<int, 2> output_pad_{};
  // Rows and columns of zeros that the input gets below and to the right: from a stride on, `output_pad` makes room for
  // more outputs of the convolution that goes the other way, which are no inputs.
  std::array<int, 2> extra_{};
  bool relu_ = false;  // what follows is a ReLU, which is done here, in one pass with the bias
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;  // null without bias
};

}  // namespace twiddle
