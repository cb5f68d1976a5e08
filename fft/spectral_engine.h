#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fft/spectral_plan.h"

namespace twiddle {

SpectralBackend cpu_fft();
SpectralBackend cufft();                  // no transforms in a build without CUDA
SpectralBackend fbfft();                  // the same
SpectralBackend winograd(Device device);  // 3x3 kernels, on either device

// The plans of one backend for stride 1: x and w are transformed, multiplied bin by bin and transformed back. The other
// two passes do the same with permuted roles (Mathieu, Henaff, LeCun, Fast Training of Convolutional Networks through
// FFTs, 2014; Vasilache et al., Fast Convolutional Nets With fbfft, 2015). Spectra are in buffers that all layers and
// spectral engines share, so that plans with the same grid and transform reuse each other's spectra.
class SpectralEngine final : public ConvEngine {
 public:
  // `limit`: the maximum bytes of spectra and scratch of a pass.
  SpectralEngine(SpectralBackend backend, std::shared_ptr<FrequencyBuffers> buffers, std::size_t limit);

  std::string_view name() const override { return backend_->engine; }
  // Returns each grid and transform with each product, or fused. Includes only plans that are within the problem's
  // error limit and fit the memory limit in all passes, as one grid serves all passes.
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most = all_plans) const override;
  bool pays(const ConvProblem& problem) const override { return backend_->pays == nullptr || backend_->pays(problem); }
  std::string library() const override { return backend_->library; }
  void forget() override { buffers_->forget(); }
  void forget_gone() override { buffers_->forget_gone(); }
  FrequencyBuffers& buffers() { return *buffers_; }

 private:
  std::vector<FrequencyProduct*> products_for(const SpectralTransform& transform, const ConvProblem& problem,
                                              const FrequencyGemm& gemm) const;
  bool can_fuse(const SpectralTransform& transform, const SpectralSlice& slice) const;
  bool fits(const ConvProblem& problem, const SpectralParts& usual) const;
  std::shared_ptr<const ConvPlan> make_plan(const ConvProblem& problem, ConvPass pass,
                                            const SpectralParts& parts) const;
  std::string describe(const SpectralParts& parts) const;

  std::shared_ptr<const SpectralBackend> backend_;
  std::shared_ptr<FrequencyBuffers> buffers_;
  std::size_t limit_;
};

// Depthwise convolutions (as many groups as channels and filters) of stride 1 on a GPU by Fourier transforms of whole
// planes, each of which goes from x to y in one kernel. Its plans are sizes of transforms: each alone, and once more
// with passes that share spectra by `buffers`, where those that backward_weight needs fit `limit` bytes. Null in a
// build without CUDA.
std::unique_ptr<ConvEngine> make_depthwise_fft_engine(Device device, std::shared_ptr<FrequencyBuffers> buffers,
                                                      std::size_t limit);

}  // namespace twiddle
