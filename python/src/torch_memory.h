#pragma once
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/tensor.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "framework/tensor.h"

namespace twiddle {

// Memory of PyTorch's allocator for that GPU, on the stream that is current; throws OutOfMemory.
std::shared_ptr<void> torch_block(int gpu, std::size_t bytes);

// A new tensor of PyTorch's, in its usual layout, with undefined elements.
torch::stable::Tensor new_torch_tensor(Device device, const Shape& shape);

// The same elements as our plans want them: without gaps, channels before rows, at an address that vectors can be
// loaded from. Copied where they are not.
torch::stable::Tensor plain(const torch::stable::Tensor& tensor);
std::optional<torch::stable::Tensor> plain(const std::optional<torch::stable::Tensor>& tensor);

Device device_of(const torch::stable::Tensor& tensor);
Shape shape_of(const torch::stable::Tensor& tensor);
// The elements of one that is plain, for as long as that stays.
Tensor view_of(const torch::stable::Tensor& tensor);

// While this lives, work goes to that device, whichever GPU was current before.
std::optional<torch::stable::accelerator::DeviceGuard> guard_for(Device device);

}  // namespace twiddle
