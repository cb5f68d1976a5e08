#pragma once
#include "layers/layer.h"

namespace twiddle {

// The numbers of each image shifted and scaled to mean 0 and variance 1, then by trained numbers (Ba, Kiros, Hinton
// 2016). Options: over: channels (those of each pixel, with a scale and bias a channel, as in ConvNeXt) or all (the
// whole image, with a scale and bias a number); epsilon.
class LayerNorm : public Layer {
 public:
  LayerNorm(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }
  std::size_t kept_bytes() const override;
  std::string describe() const override { return over_channels_ ? "over channels" : "over all"; }

 private:
  bool over_channels_;
  float epsilon_;
  Parameter *scale_, *bias_;
};

}  // namespace twiddle
