#pragma once
#include <memory>

#include "framework/device.h"

namespace twiddle {

// Work on the stream of PyTorch's that is current in the calling thread, with memory of PyTorch's allocator; on a CPU
// with a pool of its own.
std::unique_ptr<Stream> make_torch_stream(Device device);

// Whether what the stream is given now becomes part of a CUDA graph.
bool is_capturing(const Stream& stream);

}  // namespace twiddle
