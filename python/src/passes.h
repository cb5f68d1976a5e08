#pragma once
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/convolutions.h"

// Forward and backward passes on PyTorch's tensors, shared by the operators of ops.cpp.
namespace twiddle {

using TorchTensor = torch::stable::Tensor;
using MaybeTensor = std::optional<TorchTensor>;

// Checks the operators' arguments that are not tensors. Returns a call without the tensors' sizes.
ConvCall checked_arguments(const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& padding,
                           const std::vector<std::int64_t>& dilation, std::int64_t groups, const std::string& precision,
                           std::int64_t workspace_limit, std::string engine, bool deterministic);

// The gradients that the backward pass will compute. Passes of one training step are chosen together. Both are false
// for a single pass.
struct NeededGradients {
  bool x = false, weight = false;
};

// Returns the result, and the number of the spectra kept for the backward passes, or 0.
std::pair<TorchTensor, std::int64_t> run_forward(const TorchTensor& x, const TorchTensor& weight,
                                                 const MaybeTensor& bias, const ConvCall& arguments,
                                                 NeededGradients needed);

// Returns the gradient of x if there is a weight, and that of the weight if there is an x. `shape`: shape of the
// missing one.
std::pair<MaybeTensor, MaybeTensor> run_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                 const MaybeTensor& weight, const std::vector<std::int64_t>& shape,
                                                 const ConvCall& arguments, NeededGradients needed,
                                                 std::int64_t spectra);

}  // namespace twiddle
