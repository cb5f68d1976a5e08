#include "framework/error.h"
#include "python/src/torch_stream.h"

namespace twiddle {

std::unique_ptr<Stream> make_torch_stream(Device device) {
  if (device.kind == Device::Kind::cpu) return make_stream(device);
  throw Error(ErrorKind::device, "this build of twiddle_torch has no CUDA side");
}

bool is_capturing(const Stream& /*stream*/) {
  return false;
}

}  // namespace twiddle
