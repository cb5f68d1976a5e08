#pragma once
#include <memory>
#include <string>

#include "framework/device.h"

namespace twiddle {

std::unique_ptr<Stream> make_cuda_stream(int index);  // throws where this build or machine has no such GPU
std::string describe_cuda(int index);                 // the same

}  // namespace twiddle
