#pragma once
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

// Forward and backward passes on PyTorch's tensors: what the operators of ops.cpp have in common.
namespace twiddle {

using TorchTensor = torch::stable::Tensor;
using MaybeTensor = std::optional<TorchTensor>;

// Of what gradients will be asked for. Passes of one training step are chosen together; a pass by itself has neither.
struct NeededGradients {
  bool x = false, weight = false;
};

// The result, and the id of the spectra that were kept for the backward passes, which is 0 where there are none.
std::pair<TorchTensor, std::int64_t> run_forward(const TorchTensor& x, const TorchTensor& weight,
                                                 const MaybeTensor& bias, std::int64_t arguments,
                                                 NeededGradients needed);

// The gradient of x where there is a weight, and that of the weight where there is an x. `shape` is that of the one
// that is not there.
std::pair<MaybeTensor, MaybeTensor> run_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                 const MaybeTensor& weight, const std::vector<std::int64_t>& shape,
                                                 std::int64_t arguments, NeededGradients needed, std::int64_t spectra);

void release_spectra(std::int64_t id);

}  // namespace twiddle
