#include "fft/spectral_engine.h"

#include <algorithm>
#include <utility>

#include "fft/cuda/depthwise/depthwise_fft_plan.h"
#include "fft/cuda/depthwise/tuned_on_h200.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle {

namespace {

using small_fft::DepthwiseKernels;

// Returns the number of parts into which the images are divided for a sum over them. It is chosen so that all
// multiprocessors have blocks that transform and correlate, or, if spectra are shared, by the number of images.
int parts_of(const ConvProblem& problem, const DepthwiseKernels& kernels, int multiprocessors, bool shares) {
  if (shares) return (problem.batch + small_fft::images_a_sum - 1) / small_fft::images_a_sum;
  const int blocks = small_fft::correlating_waves * multiprocessors * kernels.correlating_blocks;
  const int most = (problem.batch + kernels.correlating_planes - 1) / kernels.correlating_planes;
  return std::clamp(blocks / problem.channels, 1, most) * kernels.correlating_planes;
}

class DepthwiseFftEngine final : public ConvEngine {
 public:
  DepthwiseFftEngine(Device device, std::shared_ptr<FrequencyBuffers> buffers, std::size_t limit)
      : multiprocessors_(multiprocessors(device)),
        buffers_(std::move(buffers)),
        limit_(std::min(limit, buffers_->budget())) {}
  std::string_view name() const override { return "depthwise_fft"; }

  ConvPlans plans(const ConvProblem& p, ConvPass pass, std::size_t most) const override {
    ConvPlans found;
    const bool dense = p.stride_h == 1 && p.stride_w == 1 && p.dilation == 1;
    if (!is_depthwise(p) || !dense) return found;
    std::size_t sizes = 0;
    for (const DepthwiseKernels& kernels : all_) {
      if (kernels.size < std::max(least_height(p), least_width(p)) || sizes++ == sizes_to_try) continue;
      found.push_back(make_plan(p, pass, kernels, false));
      if (can_share(p, kernels)) found.push_back(make_plan(p, pass, kernels, true));
    }
    if (found.size() > most) found.resize(most);
    return found;
  }

  // Compared with sums over the taps (engine `depthwise`): on small planes few taps overlap the plane, and these sums
  // are as fast.
  bool pays(const ConvProblem& p) const override {
    return std::int64_t(p.kernel_h) * p.kernel_w >= 121 && std::max(p.height, p.width) > 14;
  }
  void forget() override { buffers_->forget(); }
  void forget_gone() override { buffers_->forget_gone(); }

 private:
  static constexpr std::size_t sizes_to_try = 2;

  // Returns the bytes of spectra of images of x or y, or of sums of parts.
  static std::size_t spectrum_bytes(const ConvProblem& problem, const DepthwiseKernels& kernels, int images) {
    return static_cast<std::size_t>(std::int64_t(images) * problem.channels * kernels.spectrum_numbers) *
           sizeof(small_fft::Complex);
  }

  // Keeps spectra for the gradient of weights.
  bool can_share(const ConvProblem& problem, const DepthwiseKernels& kernels) const {
    const int parts = parts_of(problem, kernels, multiprocessors_, true);
    return problem.weight_gradient && spectrum_bytes(problem, kernels, 2 * problem.batch + parts) <= limit_;
  }

  std::shared_ptr<const ConvPlan> make_plan(const ConvProblem& problem, ConvPass pass, const DepthwiseKernels& kernels,
                                            bool shares) const {
    const bool sums_up = pass == ConvPass::backward_weight;
    const int parts = parts_of(problem, kernels, multiprocessors_, shares), images = problem.batch;
    ConvPlan::Facts facts{"depthwise_fft", join(kernels.size, "x", kernels.size, shares ? ", shared" : "")};
    facts.scratch_bytes = spectrum_bytes(problem, kernels, sums_up ? parts : 1);
    if (shares) {
      facts.kept_bytes = spectrum_bytes(problem, kernels, sums_up ? 2 * images : images + 1);
      facts.scratch_bytes = spectrum_bytes(problem, kernels, sums_up ? 2 * images + parts : images + 1);
      facts.shares = join(facts.engine, " ", facts.name);
    }
    return std::make_shared<DepthwiseFftPlan>(std::move(facts), problem, pass, kernels, parts,
                                              shares ? buffers_ : nullptr);
  }

  int multiprocessors_;
  std::shared_ptr<FrequencyBuffers> buffers_;
  std::size_t limit_;
  std::vector<DepthwiseKernels> all_ = small_fft::all_depthwise_kernels();
};

}  // namespace

std::unique_ptr<ConvEngine> make_depthwise_fft_engine(Device device, std::shared_ptr<FrequencyBuffers> buffers,
                                                      std::size_t limit) {
  return std::make_unique<DepthwiseFftEngine>(device, std::move(buffers), limit);
}

}  // namespace twiddle
