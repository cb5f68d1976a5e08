#include "python/src/torch_memory.h"

#include <torch/csrc/stable/ops.h>

#include <cstdint>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

constexpr std::uintptr_t alignment = 64;  // as guaranteed by Stream::allocate

AtenTensorHandle empty(const Shape& shape, std::int32_t type, Device device) {
  Shape strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  const bool on_gpu = device.kind == Device::Kind::cuda;
  AtenTensorHandle made = nullptr;
  const AOTITorchError status = aoti_torch_empty_strided(
      static_cast<std::int64_t>(shape.size()), shape.data(), strides.data(), type,
      on_gpu ? aoti_torch_device_type_cuda() : aoti_torch_device_type_cpu(), device.index, &made);
  if (status != TORCH_SUCCESS)
    throw OutOfMemory(join("PyTorch has no memory on ", to_string(device), " for ", to_string(shape),
                           type == aoti_torch_dtype_float32() ? " floats" : " bytes",
                           ": a smaller workspace_limit or batch needs less"));
  return made;
}

}  // namespace

std::shared_ptr<void> torch_block(int gpu, std::size_t bytes) {
  const torch::stable::Tensor block(
      empty({static_cast<std::int64_t>(bytes)}, aoti_torch_dtype_uint8(), {Device::Kind::cuda, gpu}));
  return {block.data_ptr(), [block](void*) {}};
}

torch::stable::Tensor new_torch_tensor(Device device, const Shape& shape) {
  return torch::stable::Tensor(empty(shape, aoti_torch_dtype_float32(), device));
}

torch::stable::Tensor plain(const torch::stable::Tensor& tensor) {
  const torch::stable::Tensor dense = tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
  const bool aligned = reinterpret_cast<std::uintptr_t>(dense.data_ptr()) % alignment == 0;
  return aligned ? dense : torch::stable::clone(dense);
}

std::optional<torch::stable::Tensor> plain(const std::optional<torch::stable::Tensor>& tensor) {
  return tensor ? std::optional(plain(*tensor)) : std::nullopt;
}

Device device_of(const torch::stable::Tensor& tensor) {
  if (tensor.is_cpu()) return {};
  return {Device::Kind::cuda, tensor.get_device_index()};
}

Shape shape_of(const torch::stable::Tensor& tensor) {
  const auto sizes = tensor.sizes();
  return Shape(sizes.begin(), sizes.end());
}

Tensor view_of(const torch::stable::Tensor& tensor) {
  return Tensor::over(device_of(tensor), shape_of(tensor), {std::shared_ptr<void>(), tensor.data_ptr()});
}

std::optional<torch::stable::accelerator::DeviceGuard> guard_for(Device device) {
  namespace accelerator = torch::stable::accelerator;
  if (device.kind == Device::Kind::cpu || accelerator::getCurrentDeviceIndex() == device.index) return {};
  return accelerator::DeviceGuard(device.index);
}

}  // namespace twiddle
