#include "layers/conv/engines.h"

#include "framework/error.h"
#include "layers/conv/direct_engine.h"
#include "layers/conv/gemm_engine.h"
#include "layers/conv/onednn_engine.h"

namespace twiddle {

std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device) {
  if (device.kind != Device::Kind::cpu)
    throw Error(ErrorKind::device, "no convolution engine works on " + to_string(device) + " yet; use --device cpu");
  std::vector<std::unique_ptr<ConvEngine>> engines;
  if (auto onednn = make_onednn_engine()) engines.push_back(std::move(onednn));
  engines.push_back(make_gemm_engine());
  engines.push_back(make_direct_engine());
  // Last, so that the rule never takes it: it gives up some of the precision.
  if (auto winograd = make_onednn_winograd_engine()) engines.push_back(std::move(winograd));
  return engines;
}

}  // namespace twiddle
