#pragma once
#include <memory>

#include "framework/device.h"

namespace twiddle {

// Returns a stream for PyTorch's current stream in the calling thread, with PyTorch's allocator. On a CPU, it has a
// separate memory pool.
std::unique_ptr<Stream> make_torch_stream(Device device);

// Returns whether a CUDA graph is capturing the stream.
bool is_capturing(const Stream& stream);

}  // namespace twiddle
