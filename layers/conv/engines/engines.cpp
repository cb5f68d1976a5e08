#include "layers/conv/engines/engines.h"

#include "fft/spectral_engine.h"
#include "layers/conv/engines/cpu_rule.h"

namespace twiddle {

namespace {

using Engines = std::vector<std::unique_ptr<ConvEngine>>;

// Engines that cannot be had here are null, and left out.
void add(Engines& engines, std::unique_ptr<ConvEngine> engine) {
  if (engine != nullptr) engines.push_back(std::move(engine));
}

// Strides for an engine that is good at stride 1.
void add_polyphase(Engines& engines, std::unique_ptr<ConvEngine> inner, const ConvEngineOptions& options) {
  if (inner != nullptr)
    engines.push_back(make_polyphase_engine(std::move(inner), options.frequency_budget / phases_share));
}

using SharedBuffers = std::shared_ptr<FrequencyBuffers>;

std::unique_ptr<ConvEngine> spectral(SpectralBackend backend, const SharedBuffers& buffers,
                                     const ConvEngineOptions& options) {
  if (backend.transforms.empty()) return nullptr;
  return std::make_unique<SpectralEngine>(std::move(backend), buffers, options.workspace_limit);
}

// Taps one by one are for short kernels: 16 images of 128 rows of 4,096 points take 0.37 ms with 127 taps, and with
// 1,023 of them 1.20, where cufft takes 0.72 (H100).
bool taps_pay_on_gpu(const ConvProblem& problem) {
  return problem.height > 1 || problem.kernel_w <= 512;
}

// For a 1x1 layer the product of spectra is the layer itself, plus transforms.
SpectralBackend for_larger_kernels(SpectralBackend backend) {
  backend.pays = [](const ConvProblem& problem) { return problem.kernel_h > 1 || problem.kernel_w > 1; };
  return backend;
}

// Depthwise kernels in one kernel or tap by tap, products for 1x1 and for few channels, spectra for stride 1, cuDNN for
// all else.
Engines cuda_engines(Device device, const ConvEngineOptions& options) {
  const auto buffers = std::make_shared<FrequencyBuffers>(options.frequency_budget);
  Engines engines;
  add(engines, make_depthwise_fft_engine(device, buffers, options.workspace_limit));
  add(engines, make_depthwise_engine(device, taps_pay_on_gpu));
  add(engines, make_pairs_engine(device));
  add(engines, make_implicit_gemm_engine(device));
  add(engines, spectral(for_larger_kernels(fbfft()), buffers, options));
  add(engines, spectral(for_larger_kernels(cufft()), buffers, options));
  add(engines, spectral(winograd(device), buffers, options));
  add(engines, make_cudnn_engine(device));
  add(engines, make_gemm_engine(device));
  add_polyphase(engines, make_pairs_engine(device), options);
  add_polyphase(engines, spectral(fbfft(), buffers, options), options);
  add_polyphase(engines, spectral(cufft(), buffers, options), options);
  add_polyphase(engines, make_cudnn_engine(device), options);
  return engines;
}

Engines cpu_engines(const ConvEngineOptions& options) {
  const auto buffers = std::make_shared<FrequencyBuffers>(options.frequency_budget);
  auto onednn = make_onednn_engine();
  SpectralBackend fft = cpu_fft();
  fft.pays = onednn ? spectra_pay_over_onednn : spectra_pay_over_products;
  SpectralBackend tiles = winograd({});
  if (onednn) tiles.pays = winograd_pays_over_onednn;
  Engines engines;
  add(engines, make_depthwise_engine({}, onednn ? depthwise_pays_over_onednn : depthwise_pays));
  add(engines, spectral(std::move(fft), buffers, options));
  add(engines, spectral(std::move(tiles), buffers, options));
  add(engines, std::move(onednn));
  add(engines, make_gemm_engine());
  add(engines, make_direct_engine());
  add_polyphase(engines, spectral(cpu_fft(), buffers, options), options);
  return engines;
}

}  // namespace

std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device, const ConvEngineOptions& options) {
  return device.kind == Device::Kind::cpu ? cpu_engines(options) : cuda_engines(device, options);
}

}  // namespace twiddle
