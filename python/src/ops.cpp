// The operators, as PyTorch's stable interface for libraries has them: shapes, gradients and all that happens before
// numbers are there is in twiddle_torch/ops.py. Those of the documentation come first. Those behind them, whose names
// begin with an underscore, do the same with fewer arguments, which is faster: what they know by ids means something in
// this process alone, so that they are for twiddle_torch/ops.py, and never part of a graph that outlives it.
#include <torch/csrc/stable/library.h>

#include <string>
#include <tuple>
#include <vector>

#include "framework/error.h"
#include "framework/gpu_check.h"
#include "framework/text.h"
#include "layers/conv/engines/engines.h"
#include "python/src/arguments.h"
#include "python/src/passes.h"

namespace twiddle {

namespace {

using Integers = std::vector<std::int64_t>;

template <class... Arguments>
struct Operators {
  static TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const MaybeTensor& bias,
                            Arguments... arguments) {
    return run_forward(x, weight, bias, id(std::move(arguments)...), {}).first;
  }
  static TorchTensor backward_input(const TorchTensor& grad, const TorchTensor& weight, Integers shape,
                                    Arguments... arguments) {
    return *run_backward(grad, {}, weight, shape, id(std::move(arguments)...), {}, 0).first;
  }
  static TorchTensor backward_weight(const TorchTensor& grad, const TorchTensor& x, Integers shape,
                                     Arguments... arguments) {
    return *run_backward(grad, x, {}, shape, id(std::move(arguments)...), {}, 0).second;
  }
  static std::int64_t id(Arguments... arguments) { return id_of({std::move(arguments)...}); }
};
using Documented = Operators<Integers, Integers, Integers, std::int64_t, std::string, std::int64_t, std::string, bool>;

TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const MaybeTensor& bias, std::int64_t arguments) {
  return run_forward(x, weight, bias, arguments, {}).first;
}

std::tuple<TorchTensor, std::int64_t> conv2d_recorded(const TorchTensor& x, const TorchTensor& weight,
                                                      const MaybeTensor& bias, std::int64_t arguments, bool needs_x,
                                                      bool needs_weight) {
  return run_forward(x, weight, bias, arguments, {needs_x, needs_weight});
}

std::tuple<MaybeTensor, MaybeTensor> conv2d_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                     const MaybeTensor& weight, Integers shape, std::int64_t arguments,
                                                     std::int64_t spectra) {
  return run_backward(grad, x, weight, shape, arguments, {weight.has_value(), x.has_value()}, spectra);
}

void release(std::int64_t spectra) {
  release_spectra(spectra);
}

std::int64_t kept() {
  return all_kept();
}

std::string choices() {
  return all_choices();
}

// A line for the CPU (-1) or for a GPU that can be used, and behind a tab its engines; for one that cannot, why. Empty:
// this build sees no such GPU. It is the thread's from then on.
std::string device(std::int64_t gpu) {
  if (gpu >= cuda_device_count()) return {};
  const Device device = gpu < 0 ? Device{} : Device{Device::Kind::cuda, static_cast<int>(gpu)};
  if (device.kind == Device::Kind::cuda)
    if (const std::string why = why_unusable(look_at_gpu(device.index)); !why.empty())
      return join(to_string(device), ": ", why);
  std::string text = describe(device) + "\t";
  for (const auto& engine : make_conv_engines(device)) text += join(engine->name(), " ");
  return text;
}

void measure_again() {
  ignore_kept_choices();
}

std::string build() {
  return TWIDDLE_TORCH_BUILD;
}

void implement_passes(torch::stable::detail::StableLibrary& library) {
  library.impl("conv2d", TORCH_BOX(&Documented::conv2d));
  library.impl("conv2d_backward_input", TORCH_BOX(&Documented::backward_input));
  library.impl("conv2d_backward_weight", TORCH_BOX(&Documented::backward_weight));
  library.impl("_conv2d", TORCH_BOX(&conv2d));
  library.impl("_conv2d_recorded", TORCH_BOX(&conv2d_recorded));
  library.impl("_conv2d_backward", TORCH_BOX(&conv2d_backward));
}

}  // namespace

STABLE_TORCH_LIBRARY(twiddle, library) {
  library.def(
      "conv2d(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, "
      "str precision, int workspace_limit, str engine, bool deterministic) -> Tensor");
  library.def(
      "conv2d_backward_input(Tensor grad, Tensor weight, SymInt[] input_shape, int[] stride, int[] padding, int[] "
      "dilation, int groups, str precision, int workspace_limit, str engine, bool deterministic) -> Tensor");
  library.def(
      "conv2d_backward_weight(Tensor grad, Tensor x, SymInt[] weight_shape, int[] stride, int[] padding, int[] "
      "dilation, int groups, str precision, int workspace_limit, str engine, bool deterministic) -> Tensor");
  library.def("choices() -> str");

  library.def("_conv2d(Tensor x, Tensor weight, Tensor? bias, int arguments) -> Tensor");
  library.def(
      "_conv2d_recorded(Tensor x, Tensor weight, Tensor? bias, int arguments, bool needs_x, bool needs_weight) "
      "-> (Tensor, int)");
  library.def(
      "_conv2d_backward(Tensor grad, Tensor? x, Tensor? weight, int[] shape, int arguments, int spectra) "
      "-> (Tensor?, Tensor?)");
  library.def(
      "_id(int[] stride, int[] padding, int[] dilation, int groups, str precision, int workspace_limit, str engine, "
      "bool deterministic) -> int");
  library.def("_device(int gpu) -> str");
  library.def("_release(int spectra) -> ()");
  library.def("_kept() -> int");
  library.def("_measure_again() -> ()");
  library.def("_build() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CPU, library) {
  implement_passes(library);
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CUDA, library) {
  implement_passes(library);
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CompositeExplicitAutograd, library) {
  library.impl("choices", TORCH_BOX(&choices));
  library.impl("_id", TORCH_BOX(&Documented::id));
  library.impl("_device", TORCH_BOX(&device));
  library.impl("_release", TORCH_BOX(&release));
  library.impl("_kept", TORCH_BOX(&kept));
  library.impl("_measure_again", TORCH_BOX(&measure_again));
  library.impl("_build", TORCH_BOX(&build));
}

}  // namespace twiddle
