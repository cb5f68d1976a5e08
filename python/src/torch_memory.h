#pragma once
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "framework/tensor.h"

namespace twiddle {

// Allocates memory of PyTorch's allocator for that GPU, on the current stream; throws OutOfMemory.
std::shared_ptr<void> torch_block(int gpu, std::size_t bytes);

// Returns a new, uninitialized PyTorch tensor in the default layout.
torch::stable::Tensor new_torch_tensor(Device device, const Shape& shape);

// Returns the tensor in the layout of our plans: contiguous NCHW, aligned for vector loads. Copies it if necessary.
torch::stable::Tensor plain(const torch::stable::Tensor& tensor);
std::optional<torch::stable::Tensor> plain(const std::optional<torch::stable::Tensor>& tensor);

Device device_of(const torch::stable::Tensor& tensor);
Shape shape_of(const torch::stable::Tensor& tensor);
// Returns a view of a plain tensor, valid while that tensor lives.
Tensor view_of(const torch::stable::Tensor& tensor);

// Makes the device current while it lives.
std::optional<torch::stable::accelerator::DeviceGuard> guard_for(Device device);

}  // namespace twiddle
