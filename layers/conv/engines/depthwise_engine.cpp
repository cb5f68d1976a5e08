#include "layers/conv/engines/engines.h"

#include "framework/context.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/kernels/cpu/depthwise.h"
#include "layers/conv/kernels/cuda/depthwise.h"

namespace twiddle {

namespace {

constexpr std::int64_t most_taps = 4096;  // of more, a sum in a row loses too much (docs/conv.md)

// A single channel without groups counts too, which it does not for spectra (is_depthwise in fft/grid.h).
bool can_sum_by_taps(const ConvProblem& problem) {
  return problem.groups == problem.channels && problem.groups == problem.filters &&
         std::int64_t(problem.kernel_h) * problem.kernel_w <= most_taps;
}

std::shared_ptr<const ConvPlan> plan_on_cpu(const ConvProblem& problem, ConvPass pass) {
  return plan_of({.engine = "depthwise",
                  .scratch_bytes = depthwise_scratch_on_cpu(problem, pass),
                  .fuses_epilogue_backward = pass != ConvPass::forward},
                 [problem, pass](Context& ctx, ConvOperands& operands) {
                   depthwise_on_cpu(*ctx.stream, problem, pass, operands);
                 });
}

std::shared_ptr<const ConvPlan> plan_on_gpu(const ConvProblem& problem, ConvPass pass) {
  return plan_of({.engine = "depthwise",
                  .scratch_bytes = depthwise_scratch_on_gpu(problem, pass),
                  .fuses_epilogue_backward = pass == ConvPass::backward_input || (pass == ConvPass::backward_weight &&
                                                                                  depthwise_sums_bias_on_gpu(problem))},
                 [problem, pass](Context& ctx, ConvOperands& operands) {
                   depthwise_on_gpu(*ctx.stream, problem, pass, operands);
                 });
}

class DepthwiseEngine final : public ConvEngine {
 public:
  DepthwiseEngine(bool on_gpu, bool (*in_rule)(const ConvProblem&)) : on_gpu_(on_gpu), pays_(in_rule) {}
  std::string_view name() const override { return "depthwise"; }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t) const override {
    if (!can_sum_by_taps(problem)) return {};
    if (!on_gpu_) return {plan_on_cpu(problem, pass)};
    if (!depthwise_fits_gpu(problem)) return {};
    return {plan_on_gpu(problem, pass)};
  }
  bool pays(const ConvProblem& problem) const override { return pays_ == nullptr || pays_(problem); }

 private:
  bool on_gpu_;
  bool (*pays_)(const ConvProblem&);
};

}  // namespace

std::unique_ptr<ConvEngine> make_depthwise_engine(Device device, bool (*pays)(const ConvProblem&)) {
  return std::make_unique<DepthwiseEngine>(device.kind == Device::Kind::cuda, pays);
}

}  // namespace twiddle
