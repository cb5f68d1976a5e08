#pragma once
#include "layers/layer.h"

namespace twiddle {

// max(x, 0); a NaN stays one.
class Relu : public Layer {
 public:
  Relu(const Site& site, Params&) : Layer(site.name, site.input) {}
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_output() const override { return !taken_over_; }
  bool shares_input() const override { return taken_over_; }
  std::string describe() const override { return taken_over_ ? "done by the layer before" : ""; }
  void leave_work_to(Layer& before) override { taken_over_ = before.take_over_relu(); }

 private:
  bool taken_over_ = false;
};

}  // namespace twiddle
