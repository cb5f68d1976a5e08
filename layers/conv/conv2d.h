#pragma once
#include <array>
#include <string>

#include "layers/conv/conv_options.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/layer.h"

namespace twiddle {

// A convolution with bias: x [batch, channels, height, width] to [batch, filters, out_h, out_w].
class Conv2d : public Layer {
 public:
  Conv2d(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& given) override;
  double flops() const override { return convolution_.of_one_image().flops(); }
  bool keeps_input() const override { return true; }
  bool keeps_output() const override { return relu_; }
  bool takes_16_bits() const override { return true; }
  bool take_over_relu() override;
  std::vector<const TunedConvolution*> convolutions() const override { return {&convolution_}; }
  std::string describe() const override;

 protected:
  Conv2d(const Site& site, const std::string& kind, TunedConvolution::Direction direction);
  // Adds the parameters and defines the convolution, whose problem was validated. The weight may have another shape
  // than the problem's.
  void define(const ConvProblem& problem, const ConvLayerOptions& options, const Shape& weight, std::int64_t fan_in,
              std::int64_t fan_out);
  // Rows and columns of zeros that the input gets below and to the right before the convolution.
  void extend_input(const std::array<int, 2>& zeros) { extra_ = zeros; }

 private:
  // Views of the layer's tensors in the convolution's shapes; a transposed one swaps x and y.
  ConvOperands operands_of(const ConvProblem& here, ConvOperands layer) const;
  // `input` is x's value, which x itself may have dropped by then; `output` is defined where the ReLU is done here.
  void backward(Context& ctx, const ConvProblem& here, const Variable& x, const Tensor& input, const Tensor& output,
                Tensor grad_y);

  TunedConvolution convolution_;
  Shape input_;  // of one image
  std::array<int, 2> extra_{};
  bool relu_ = false;  // what follows is a ReLU, which is done here
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;  // null without bias
};

}  // namespace twiddle
