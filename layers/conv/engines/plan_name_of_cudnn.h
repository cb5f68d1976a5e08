#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twiddle {

// The name of one of cuDNN's plans, from which it can be made again: an algorithm of the older calls,
// "winograd_nonfused" or "fft (tensor cores)", or an engine of the graph API with its settings, "nhwc (engine 18 k11=0
// k24=3)".
struct CudnnPlanName {
  std::string family;                                 // the engine's name after "cudnn:"
  bool tensor_cores = false;                          // of an algorithm
  std::int64_t engine = -1;                           // the graph API's number; below 0: an algorithm
  std::vector<std::pair<int, std::int64_t>> knobs{};  // of such an engine: type and value
  bool operator==(const CudnnPlanName&) const = default;
};

std::string to_string(const CudnnPlanName& name);
std::optional<CudnnPlanName> parse_cudnn_plan_name(
    const std::string& text);  // empty where to_string says no such thing

}  // namespace twiddle
