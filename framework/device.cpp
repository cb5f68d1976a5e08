#include "framework/device.h"

#include <charconv>

#include "framework/cpu/cpu_stream.h"
#include "framework/cuda/cuda_stream.h"
#include "framework/error.h"
#include "framework/gpu_check.h"

namespace twiddle {

namespace {

Device first_usable_gpu_or_cpu() {
  for (int index = 0; index < cuda_device_count(); ++index)
    if (why_unusable(look_at_gpu(index)).empty()) return {Device::Kind::cuda, index};
  return {};
}

}  // namespace

std::string to_string(const Device& device) {
  return device.kind == Device::Kind::cpu ? "cpu" : join("cuda:", device.index);
}

Device parse_device(std::string_view text) {
  if (text == "cpu") return {};
  if (text == "auto") return first_usable_gpu_or_cpu();
  if (text == "cuda") return {Device::Kind::cuda, 0};
  if (text.starts_with("cuda:")) {
    const std::string_view number = text.substr(5);
    int index = -1;
    const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (status == std::errc() && end == number.data() + number.size() && index >= 0) return {Device::Kind::cuda, index};
  }
  throw Error(ErrorKind::config, join("device '", text, "' is not one of: auto, cpu, cuda, cuda:N"));
}

std::string describe(const Device& device) {
  return device.kind == Device::Kind::cpu ? describe_cpu() : describe_cuda(device.index);
}

std::unique_ptr<Stream> make_stream(Device device) {
  return device.kind == Device::Kind::cpu ? make_cpu_stream() : make_cuda_stream(device.index);
}

}  // namespace twiddle
