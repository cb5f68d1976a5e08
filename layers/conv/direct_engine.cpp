#include "layers/conv/direct_engine.h"

#include "framework/error.h"
#include "layers/conv/engines.h"
#include "layers/conv/epilogue.h"

namespace twiddle {

namespace {

class DirectEngine : public ConvEngine {
 public:
  std::string_view name() const override { return "direct"; }
  bool supports(const ConvProblem&, ConvPass) const override { return true; }
  std::size_t workspace_bytes(const ConvProblem&, ConvPass) const override { return 0; }

  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) override {
    require(ctx.stream->device().kind == Device::Kind::cpu, "the engine 'direct' works on the CPU alone");
    auto& [x, w, y, bias, relu, mask] = operands;
    Tensor& written = pass == ConvPass::forward ? y : pass == ConvPass::backward_input ? x : w;
    float* result = written.write();
    const float* const x_values = pass == ConvPass::backward_input ? nullptr : x.read();
    const float* const w_values = pass == ConvPass::backward_weight ? nullptr : w.read();
    const float* const y_values = pass == ConvPass::forward ? nullptr : y.read();
    const float* const bias_values = bias.defined() ? bias.read() : nullptr;
    const std::int64_t count = written.size();
#pragma omp parallel for schedule(dynamic, 16)
    for (std::int64_t index = 0; index < count; ++index)
      result[index] =
          static_cast<float>(conv_reference(problem, pass, x_values, w_values, y_values, bias_values, index));
    if (pass == ConvPass::forward && relu) relu_in_place(*ctx.stream, y);
  }
};

}  // namespace

std::unique_ptr<ConvEngine> make_direct_engine() {
  return std::make_unique<DirectEngine>();
}

}  // namespace twiddle
