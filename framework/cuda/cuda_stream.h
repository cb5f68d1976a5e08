#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "framework/cuda/host_wait.h"
#include "framework/device.h"

namespace twiddle {

constexpr std::size_t cublas_workspace_bytes = std::size_t(32) << 20;  // that each stream takes

std::unique_ptr<Stream> make_cuda_stream(int index);  // throws where this build or machine has no such GPU
std::string describe_cuda(int index);                 // the same
std::shared_ptr<const HostWait> host_wait_of(const Stream& stream);
std::size_t launches_of(const Graph& graph);  // kernels, copies and fills of one play

}  // namespace twiddle
