#include "fft/depthwise_fft_engine.h"

#include <algorithm>

#include "fft/cuda/depthwise/depthwise_kernels.h"
#include "fft/cuda/depthwise/tuned_on_h200.h"
#include "framework/context.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle {

namespace {

using small_fft::DepthwiseKernels;
using small_fft::DepthwisePlanes;
using small_fft::PlaneWindow;

// Transforms are circular: with x at `pad` and y at 0, what lies outside of the planes stays zero from this size on.
int least_size(const ConvProblem& p) {
  const int height = std::max({p.height + p.pad_h, p.out_height(), p.kernel_h});
  const int width = std::max({p.width + p.pad_w, p.out_width(), p.kernel_w});
  return std::max(height, width);
}

// Into how many parts the images are cut for a sum over them, so that all multiprocessors have work.
int parts_of(const ConvProblem& problem, const DepthwiseKernels& kernels, int multiprocessors) {
  const int blocks = small_fft::correlating_waves * multiprocessors * kernels.correlating_blocks;
  const int most = (problem.batch + kernels.correlating_planes - 1) / kernels.correlating_planes;
  return std::clamp(blocks / problem.channels, 1, most) * kernels.correlating_planes;
}

class DepthwiseFftPlan final : public ConvPlan {
 public:
  // `spectra` of each channel: as many as parts, or that of its kernel.
  DepthwiseFftPlan(Facts facts, const ConvProblem& problem, ConvPass pass, const DepthwiseKernels& kernels, int spectra)
      : ConvPlan(std::move(facts)), problem_(problem), pass_(pass), kernels_(kernels), spectra_(spectra) {}

  void run(Context& ctx, ConvOperands& operands) const override {
    Stream& stream = *ctx.stream;
    const std::shared_ptr<void> scratch = stream.allocate(facts().scratch_bytes);
    auto* const spectra = static_cast<small_fft::Complex*>(scratch.get());
    const ConvProblem& p = problem_;
    const DepthwisePlanes x = planes({p.height, p.width, p.pad_h, p.pad_w}, p.batch);
    const DepthwisePlanes y = planes({p.out_height(), p.out_width(), 0, 0}, p.batch);
    const DepthwisePlanes w = planes({p.kernel_h, p.kernel_w, 0, 0}, 1);
    if (pass_ == ConvPass::backward_weight) {
      kernels_.correlate(stream, {x, y, operands.x.read(), operands.y.read(), spectra, spectra_});
      kernels_.inverse_sum(stream, {w, spectra, operands.w.write(), spectra_});
      return;
    }
    const bool forward = pass_ == ConvPass::forward;
    const float* const bias = forward && operands.bias.defined() ? operands.bias.read() : nullptr;
    kernels_.transform(stream, {w, operands.w.read(), spectra});
    if (forward)
      kernels_.convolve(stream, {x, y, operands.x.read(), operands.y.write(), spectra, true, bias, operands.relu});
    else
      kernels_.convolve(stream, {y, x, operands.y.read(), operands.x.write(), spectra, false, nullptr, false});
  }

 private:
  DepthwisePlanes planes(const PlaneWindow& window, int images) const {
    return {window, Divisor(images), problem_.channels};
  }

  ConvProblem problem_;
  ConvPass pass_;
  DepthwiseKernels kernels_;
  int spectra_;
};

class DepthwiseFftEngine final : public ConvEngine {
 public:
  explicit DepthwiseFftEngine(Device device) : multiprocessors_(multiprocessors(device)) {}
  std::string_view name() const override { return "depthwise_fft"; }

  ConvPlans plans(const ConvProblem& p, ConvPass pass, std::size_t most) const override {
    ConvPlans found;
    const bool depthwise = p.groups > 1 && p.groups == p.channels && p.groups == p.filters;
    const bool dense = p.stride_h == 1 && p.stride_w == 1 && p.dilation == 1;
    if (!depthwise || !dense || p.precision == Precision::bf16) return found;
    for (const DepthwiseKernels& kernels : all_)
      if (kernels.size >= least_size(p) && found.size() < std::min<std::size_t>(most, sizes_to_try))
        found.push_back(make_plan(p, pass, kernels));
    return found;
  }

  // Beside sums over the taps, which the engine `depthwise` does; on small planes few taps meet the plane, and those
  // are as fast.
  bool pays(const ConvProblem& p) const override {
    return p.kernel_h * p.kernel_w >= 121 && std::max(p.height, p.width) > 14;
  }

 private:
  static constexpr std::size_t sizes_to_try = 2;

  std::shared_ptr<const ConvPlan> make_plan(const ConvProblem& problem, ConvPass pass,
                                            const DepthwiseKernels& kernels) const {
    const int spectra = pass == ConvPass::backward_weight ? parts_of(problem, kernels, multiprocessors_) : 1;
    ConvPlan::Facts facts{"depthwise_fft", join(kernels.size, "x", kernels.size)};
    facts.scratch_bytes =
        static_cast<std::size_t>(spectra * problem.channels * kernels.spectrum_numbers) * sizeof(small_fft::Complex);
    return std::make_shared<DepthwiseFftPlan>(std::move(facts), problem, pass, kernels, spectra);
  }

  int multiprocessors_;
  std::vector<DepthwiseKernels> all_ = small_fft::all_depthwise_kernels();
};

}  // namespace

std::unique_ptr<ConvEngine> make_depthwise_fft_engine(Device device) {
  return std::make_unique<DepthwiseFftEngine>(device);
}

}  // namespace twiddle
