#pragma once
#include <memory>

#include "framework/device.h"

namespace twiddle {

std::unique_ptr<Stream> make_cpu_stream();
std::string describe_cpu();

}  // namespace twiddle
