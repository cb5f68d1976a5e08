#include "layers/conv/engines.h"

#include <algorithm>
#include <string>

#include "fft/spectral_engine.h"
#include "layers/conv/cudnn_engine.h"
#include "layers/conv/direct_engine.h"
#include "layers/conv/gemm_engine.h"
#include "layers/conv/onednn_engine.h"
#include "layers/conv/polyphase_engine.h"
#include "layers/conv/spectral_tuner.h"

namespace twiddle {

namespace {

using Engines = std::vector<std::unique_ptr<ConvEngine>>;

// The spectral engine of a backend; none where it cannot be had.
void add_spectral(Engines& engines, SpectralBackend backend, const std::shared_ptr<FrequencyBuffers>& buffers,
                  const ConvEngineOptions& options) {
  if (backend.transforms.empty()) return;
  engines.push_back(std::make_unique<SpectralEngine>(
      std::move(backend), buffers, options.workspace_limit,
      options.deterministic ? SpectralEngine::Tuner() : spectral_tuner(options.cache, options.workspace_limit)));
}

// Strides for the engines that know stride 1 alone; the rule comes to none of them.
void add_polyphase(Engines& engines, const std::vector<std::string>& inner) {
  Engines added;
  for (const auto& engine : engines)
    if (std::find(inner.begin(), inner.end(), engine->name()) != inner.end())
      added.push_back(make_polyphase_engine(*engine));
  for (auto& engine : added) engines.push_back(std::move(engine));
}

// Spectra for stride 1, cuDNN for all else.
Engines cuda_engines(const ConvEngineOptions& options) {
  Engines engines;
  add_spectral(engines, cufft(), std::make_shared<FrequencyBuffers>(options.frequency_budget), options);
  Engines cudnn = make_cudnn_engines(options);  // none in a build without cuDNN
  cudnn.insert(cudnn.begin() + (cudnn.empty() ? 0 : 1), make_gemm_engine());
  for (auto& engine : cudnn) engines.push_back(std::move(engine));
  add_polyphase(engines, {"cufft", "cudnn"});
  return engines;
}

Engines cpu_engines(const ConvEngineOptions& options) {
  Engines engines;
  if (auto onednn = make_onednn_engine()) engines.push_back(std::move(onednn));
  add_spectral(engines, cpu_fft(), std::make_shared<FrequencyBuffers>(options.frequency_budget), options);
  engines.push_back(make_gemm_engine());
  engines.push_back(make_direct_engine());
  // Last, so that the rule never takes it: it gives up some of the precision.
  if (auto winograd = make_onednn_winograd_engine()) engines.push_back(std::move(winograd));
  add_polyphase(engines, {"fft"});
  return engines;
}

}  // namespace

std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device, const ConvEngineOptions& options) {
  return device.kind == Device::Kind::cpu ? cpu_engines(options) : cuda_engines(options);
}

}  // namespace twiddle
