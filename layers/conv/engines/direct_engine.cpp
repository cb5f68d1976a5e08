#include "layers/conv/engines/engines.h"

#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv/engines/epilogue.h"

namespace twiddle {

namespace {

class DirectPlan final : public ConvPlan {
 public:
  DirectPlan(const ConvProblem& problem, ConvPass pass)
      : ConvPlan({.engine = "direct", .exact = true}), problem_(problem), pass_(pass) {}

  void run(Context& ctx, ConvOperands& operands) const override {
    require(ctx.stream->device().kind == Device::Kind::cpu, "the engine 'direct' works on the CPU alone");
    auto& [x, w, y, bias, relu, mask] = operands;
    Tensor& written = pass_ == ConvPass::forward ? y : pass_ == ConvPass::backward_input ? x : w;
    float* result = written.write();
    const float* const x_values = pass_ == ConvPass::backward_input ? nullptr : x.read();
    const float* const w_values = pass_ == ConvPass::backward_weight ? nullptr : w.read();
    const float* const y_values = pass_ == ConvPass::forward ? nullptr : y.read();
    const float* const bias_values = bias.defined() ? bias.read() : nullptr;
    const std::int64_t count = written.size();
#pragma omp parallel for schedule(dynamic, 16)
    for (std::int64_t index = 0; index < count; ++index)
      result[index] =
          static_cast<float>(conv_reference(problem_, pass_, x_values, w_values, y_values, bias_values, index));
    if (pass_ == ConvPass::forward && relu) relu_in_place(*ctx.stream, y);
  }

 private:
  ConvProblem problem_;
  ConvPass pass_;
};

class DirectEngine final : public ConvEngine {
 public:
  std::string_view name() const override { return "direct"; }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t) const override {
    return {std::make_shared<DirectPlan>(problem, pass)};
  }
};

}  // namespace

std::unique_ptr<ConvEngine> make_direct_engine() {
  return std::make_unique<DirectEngine>();
}

}  // namespace twiddle
