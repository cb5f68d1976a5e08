#include "layers/conv/engines.h"

#include "layers/conv/cudnn_engine.h"
#include "layers/conv/direct_engine.h"
#include "layers/conv/gemm_engine.h"
#include "layers/conv/onednn_engine.h"

namespace twiddle {

namespace {

using Engines = std::vector<std::unique_ptr<ConvEngine>>;

Engines cuda_engines(const ConvEngineOptions& options) {
  Engines engines = make_cudnn_engines(options);  // none in a build without cuDNN
  engines.insert(engines.begin() + (engines.empty() ? 0 : 1), make_gemm_engine());
  return engines;
}

Engines cpu_engines() {
  Engines engines;
  if (auto onednn = make_onednn_engine()) engines.push_back(std::move(onednn));
  engines.push_back(make_gemm_engine());
  engines.push_back(make_direct_engine());
  // Last, so that the rule never takes it: it gives up some of the precision.
  if (auto winograd = make_onednn_winograd_engine()) engines.push_back(std::move(winograd));
  return engines;
}

}  // namespace

std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device, const ConvEngineOptions& options) {
  return device.kind == Device::Kind::cpu ? cpu_engines() : cuda_engines(options);
}

}  // namespace twiddle
