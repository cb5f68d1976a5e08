#include "framework/context.h"

namespace twiddle {

Context::Context(Device device, std::uint64_t seed) : stream(make_stream(device)), random(seed) {}

}  // namespace twiddle
