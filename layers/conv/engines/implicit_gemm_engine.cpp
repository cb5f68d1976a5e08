#include "layers/conv/engines/engines.h"

#include "fft/pair_product.h"
#include "framework/context.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/kernels/cuda/implicit_gemm/implicit_gemm.h"
#include "layers/conv/kernels/cuda/tap_shifts/tap_shifts.h"

namespace twiddle {

namespace {

std::shared_ptr<const ConvPlan> gathering_plan(const Device& device, const ConvProblem& problem, ConvPass pass,
                                               TensorCores cores) {
  return plan_of({.engine = "implicit_gemm",
                  .name = cores == TensorCores::wgmma ? "wgmma" : "mma",
                  .scratch_bytes = implicit_gemm_scratch(device, problem, pass),
                  .fuses_epilogue_backward = pass == ConvPass::backward_weight},
                 [problem, pass, cores](Context& ctx, ConvOperands& operands) {
                   run_implicit_gemm(*ctx.stream, cores, problem, pass, operands);
                 });
}

// For 3x3 kernels and any number of channels. The backward pass of bias and ReLU is a separate pass, which serves both
// gradients: fused it takes longer in every layer of VGG-E (docs/notes/products.md).
std::shared_ptr<const ConvPlan> tap_shifts_plan(const Device& device, const ConvProblem& problem, ConvPass pass) {
  return plan_of(
      {.engine = "implicit_gemm", .name = "shifts", .scratch_bytes = tap_shifts_scratch(device, problem, pass)},
      [problem, pass](Context& ctx, ConvOperands& operands) { run_tap_shifts(*ctx.stream, problem, pass, operands); });
}

class ImplicitGemmEngine final : public ConvEngine {
 public:
  explicit ImplicitGemmEngine(Device device) : device_(device), cores_(tensor_cores(device)) {}
  std::string_view name() const override { return "implicit_gemm"; }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    ConvPlans found;
    if (implicit_gemm_fits(device_, problem, pass))
      for (const TensorCores cores : cores_)
        if (found.size() < most && (cores == TensorCores::mma || pass != ConvPass::backward_weight))
          found.push_back(gathering_plan(device_, problem, pass, cores));
    // Back to x of a first layer nearly all rows of the products would be empty, and the rule would take it.
    const bool to_few = pass == ConvPass::backward_input && problem.channels <= few_channels;
    if (found.size() < most && cores_.front() == TensorCores::wgmma && !to_few && tap_shifts_fit(problem, pass))
      found.push_back(tap_shifts_plan(device_, problem, pass));
    return found;
  }
  // With more channels, and with large kernels of stride 1, spectra do with fewer multiplications.
  bool pays(const ConvProblem& p) const override {
    const bool few_taps = p.stride_h > 1 || p.stride_w > 1 || std::int64_t(p.kernel_h) * p.kernel_w <= 9;
    return p.channels <= few_channels && p.filters >= 32 && few_taps && p.flops() > 5e8;
  }

 private:
  static constexpr int few_channels = 4;  // a first layer's
  Device device_;
  std::vector<TensorCores> cores_;
};

}  // namespace

std::unique_ptr<ConvEngine> make_implicit_gemm_engine(Device device) {
  if (tensor_cores(device).empty()) return nullptr;
  return std::make_unique<ImplicitGemmEngine>(device);
}

}  // namespace twiddle
