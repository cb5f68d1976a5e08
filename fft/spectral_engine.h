#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fft/frequency_buffers.h"
#include "fft/frequency_product.h"
#include "fft/fused_inverse.h"
#include "fft/spectral_transform.h"
#include "framework/convolution.h"

namespace twiddle {

// All ways of one kind to make spectra and to multiply them. Products, and the fused inverse, serve the transforms of
// their storage.
struct SpectralBackend {
  std::string engine;   // its name: "fft", "cufft"
  std::string library;  // "cuFFT 12.0": whose speed is not this program's own; empty: its own
  std::vector<std::unique_ptr<SpectralTransform>> transforms;  // the usual one first; none: cannot be had here
  std::vector<std::unique_ptr<FrequencyProduct>> products;     // the usual one of each storage first
  std::unique_ptr<FusedInverse> fused = nullptr;               // for forward passes; null: none
  bool (*pays)(const ConvProblem&) = nullptr;                  // where the rule takes it; null: wherever it can
};
SpectralBackend cpu_fft();
SpectralBackend cufft();  // no transforms in a build without CUDA
SpectralBackend fbfft();  // likewise

// One way through a backend: a grid, a transform and a product of its lists. The number behind the last product means
// the fused inverse; a pass that it does not serve takes the usual product then.
struct SpectralStrategy {
  FrequencyGrid grid;
  std::size_t transform = 0, product = 0;
  bool operator==(const SpectralStrategy&) const = default;
};

// Convolution as a product of spectra, for stride 1: x and w are transformed, multiplied a bin at a time and
// transformed back, and the other two passes likewise with the roles permuted (Mathieu, Henaff, LeCun, Fast Training of
// Convolutional Networks through FFTs, 2014; Vasilache et al., Fast Convolutional Nets With fbfft, 2015). Spectra live
// in buffers that all layers and spectral engines share. A batch whose spectra exceed the limit goes in slices.
class SpectralEngine final : public ConvEngine {
 public:
  // Asked by tune(), once for a problem, to set its strategies by measurement.
  using Tuner = std::function<void(Context&, SpectralEngine&, const ConvProblem&)>;

  // `limit`: the most bytes of spectra and scratch that a pass may take.
  SpectralEngine(SpectralBackend backend, std::shared_ptr<FrequencyBuffers> buffers, std::size_t limit,
                 Tuner tuner = {});

  std::string_view name() const override { return backend_.engine; }
  bool supports(const ConvProblem& problem, ConvPass pass) const override;
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override;
  std::size_t kept_bytes(const ConvProblem& problem, ConvPass pass) const override;  // the factors' spectra
  bool pays(const ConvProblem& problem) const override { return backend_.pays == nullptr || backend_.pays(problem); }
  void forget() override { buffers_->forget(); }
  bool shares_work_between_passes() const override { return true; }
  bool does_epilogue_backward() const override;
  std::string library() const override { return backend_.library; }
  std::string details(const ConvProblem& problem, ConvPass pass) const override;
  void tune(Context& ctx, const ConvProblem& problem) override;
  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) override;

  // All strategies that keep the problem's precision and fit the limit for all passes, the likely best first: the way
  // of who does not tune.
  std::vector<SpectralStrategy> strategies(const ConvProblem& problem) const;
  void set_strategy(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy);
  SpectralStrategy strategy(const ConvProblem& problem, ConvPass pass) const;  // that was set, or the first
  std::string describe(const SpectralStrategy& strategy) const;                // "32x32, geam, strided_batched"
  FrequencyBuffers& buffers() { return *buffers_; }

 private:
  struct Plan;
  using Key = std::pair<ConvProblem, ConvPass>;
  Plan plan(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy, int images) const;
  Plan plan_in_slices(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy, int images) const;
  bool fuses(const SpectralStrategy& strategy) const;
  std::size_t usual_product(std::size_t transform) const;                    // behind the last: none
  SpectralStrategy in_pass(SpectralStrategy strategy, ConvPass pass) const;  // as the pass can do it
  std::optional<int> most_images(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy) const;
  int images_at_once(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy) const;
  const std::vector<SpectralStrategy>& known_strategies(const ConvProblem& problem) const;

  SpectralBackend backend_;
  std::shared_ptr<FrequencyBuffers> buffers_;
  std::size_t limit_;
  Tuner tuner_;
  std::map<Key, SpectralStrategy> chosen_;
  std::set<ConvProblem> tuned_;
  mutable std::map<ConvProblem, std::vector<SpectralStrategy>> strategies_;  // found once, asked often
};

}  // namespace twiddle
