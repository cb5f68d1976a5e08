#include "layers/conv/engines.h"

#include <algorithm>
#include <iterator>

#include "fft/spectral_engine.h"
#include "layers/conv/cpu_rule.h"
#include "layers/conv/cudnn_engine.h"
#include "layers/conv/direct_engine.h"
#include "layers/conv/gemm_engine.h"
#include "layers/conv/onednn_engine.h"
#include "layers/conv/polyphase_engine.h"
#include "layers/conv/spectral_tuner.h"

namespace twiddle {

namespace {

using Engines = std::vector<std::unique_ptr<ConvEngine>>;

using Buffers = std::shared_ptr<FrequencyBuffers>;

// Null where the backend cannot be had.
std::unique_ptr<ConvEngine> spectral(SpectralBackend backend, const Buffers& buffers,
                                     const ConvEngineOptions& options) {
  if (backend.transforms.empty()) return nullptr;
  return std::make_unique<SpectralEngine>(
      std::move(backend), buffers, options.workspace_limit,
      options.deterministic ? SpectralEngine::Tuner()
                            : spectral_tuner(options.cache, options.workspace_limit, options.measuring));
}

// Strides for an engine that is good at stride 1. It has an inner engine of its own, with problems of its own.
void add_polyphase(Engines& engines, std::unique_ptr<ConvEngine> inner) {
  if (inner != nullptr) engines.push_back(make_polyphase_engine(std::move(inner)));
}

// Spectra for stride 1, cuDNN for all else.
Engines cuda_engines(Device device, const ConvEngineOptions& options) {
  const auto buffers = std::make_shared<FrequencyBuffers>(options.frequency_budget);
  Engines engines;
  if (auto engine = spectral(fbfft(), buffers, options)) engines.push_back(std::move(engine));
  if (auto engine = spectral(cufft(), buffers, options)) engines.push_back(std::move(engine));
  Engines cudnn =
      make_cudnn_engines(device, options);  // none in a build without cuDNN; the first takes the best of the others
  if (!cudnn.empty()) engines.push_back(std::move(cudnn.front()));
  engines.push_back(make_gemm_engine());
  add_polyphase(engines, spectral(fbfft(), buffers, options));
  add_polyphase(engines, spectral(cufft(), buffers, options));
  if (!cudnn.empty()) {
    add_polyphase(engines, std::move(make_cudnn_engines(device, options).front()));
    std::move(cudnn.begin() + 1, cudnn.end(), std::back_inserter(engines));
  }
  return engines;
}

Engines cpu_engines(const ConvEngineOptions& options) {
  const auto buffers = std::make_shared<FrequencyBuffers>(options.frequency_budget);
  Engines engines;
  auto onednn = make_onednn_engine();
  SpectralBackend fft = cpu_fft();
  fft.pays = onednn ? spectra_pay_beside_onednn : spectra_pay_beside_products;
  if (auto engine = spectral(std::move(fft), buffers, options)) engines.push_back(std::move(engine));
  if (onednn) engines.push_back(std::move(onednn));
  engines.push_back(make_gemm_engine());
  engines.push_back(make_direct_engine());
  add_polyphase(engines, spectral(cpu_fft(), buffers, options));
  // Last, so that the rule never takes it: it gives up some of the precision.
  if (auto winograd = make_onednn_winograd_engine()) engines.push_back(std::move(winograd));
  return engines;
}

}  // namespace

std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device, const ConvEngineOptions& options) {
  return device.kind == Device::Kind::cpu ? cpu_engines(options) : cuda_engines(device, options);
}

}  // namespace twiddle
