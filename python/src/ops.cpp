// The operators, for PyTorch's stable library interface. Shapes, gradients and everything that needs no data are in
// twiddle_torch/ops.py. The documented operators come first. Those after them, whose names begin with an underscore, do
// the same with fewer arguments, which is faster. Their ids are valid in this process only. Only twiddle_torch/ops.py
// may use them, and no graph that outlives the process may contain them.
#include <torch/csrc/stable/library.h>

#include <deque>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "framework/error.h"
#include "framework/gpu_check.h"
#include "framework/text.h"
#include "layers/conv/engines/engines.h"
#include "python/src/passes.h"

namespace twiddle {

namespace {

using Integers = std::vector<std::int64_t>;

// Never destroyed: PyTorch may still call after a library's static objects are destroyed at process exit.
struct AllArguments {
  std::mutex mutex;
  std::deque<ConvCall> by_id;
};
AllArguments& all_arguments() {
  static auto& all = *new AllArguments;
  return all;
}

// An id represents arguments in this process, so that a call from Python passes one number.
std::int64_t id_of(const ConvCall& arguments) {
  AllArguments& all = all_arguments();
  const std::lock_guard lock(all.mutex);
  all.by_id.push_back(arguments);
  return static_cast<std::int64_t>(all.by_id.size()) - 1;
}

const ConvCall& arguments_of(std::int64_t id) {
  AllArguments& all = all_arguments();
  const std::lock_guard lock(all.mutex);
  require(id >= 0 && id < static_cast<std::int64_t>(all.by_id.size()), "no arguments have the id ", id);
  return all.by_id[static_cast<std::size_t>(id)];
}

template <class... Arguments>
struct Operators {
  static TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const MaybeTensor& bias,
                            Arguments... given) {
    return run_forward(x, weight, bias, checked_arguments(given...), {}).first;
  }
  static TorchTensor backward_input(const TorchTensor& grad, const TorchTensor& weight, Integers shape,
                                    Arguments... given) {
    return *run_backward(grad, {}, weight, shape, checked_arguments(given...), {}, 0).first;
  }
  static TorchTensor backward_weight(const TorchTensor& grad, const TorchTensor& x, Integers shape,
                                     Arguments... given) {
    return *run_backward(grad, x, {}, shape, checked_arguments(given...), {}, 0).second;
  }
  static std::int64_t id(Arguments... given) { return id_of(checked_arguments(given...)); }
};
using Documented = Operators<Integers, Integers, Integers, std::int64_t, std::string, std::int64_t, std::string, bool>;

TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const MaybeTensor& bias, std::int64_t arguments) {
  return run_forward(x, weight, bias, arguments_of(arguments), {}).first;
}

std::tuple<TorchTensor, std::int64_t> conv2d_recorded(const TorchTensor& x, const TorchTensor& weight,
                                                      const MaybeTensor& bias, std::int64_t arguments, bool needs_x,
                                                      bool needs_weight) {
  return run_forward(x, weight, bias, arguments_of(arguments), {needs_x, needs_weight});
}

std::tuple<MaybeTensor, MaybeTensor> conv2d_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                     const MaybeTensor& weight, Integers shape, std::int64_t arguments,
                                                     std::int64_t spectra) {
  return run_backward(grad, x, weight, shape, arguments_of(arguments), {weight.has_value(), x.has_value()}, spectra);
}

// Returns a line for the CPU (-1) or a usable GPU, then a tab and its engines. For an unusable GPU, returns the reason.
// Empty: this build sees no such GPU. Makes the GPU current in the calling thread.
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
  const std::string arguments =
      "int[] stride, int[] padding, int[] dilation, int groups, str precision, int workspace_limit, str engine, "
      "bool deterministic) -> ";
  const auto define = [&](const std::string& start, const char* result) {
    library.def((start + arguments + result).c_str());
  };
  define("conv2d(Tensor x, Tensor weight, Tensor? bias, ", "Tensor");
  define("conv2d_backward_input(Tensor grad, Tensor weight, SymInt[] input_shape, ", "Tensor");
  define("conv2d_backward_weight(Tensor grad, Tensor x, SymInt[] weight_shape, ", "Tensor");
  define("_id(", "int");
  library.def("choices() -> str");

  library.def("_conv2d(Tensor x, Tensor weight, Tensor? bias, int arguments) -> Tensor");
  library.def(
      "_conv2d_recorded(Tensor x, Tensor weight, Tensor? bias, int arguments, bool needs_x, bool needs_weight) "
      "-> (Tensor, int)");
  library.def(
      "_conv2d_backward(Tensor grad, Tensor? x, Tensor? weight, int[] shape, int arguments, int spectra) "
      "-> (Tensor?, Tensor?)");
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
  library.impl("choices", TORCH_BOX(&all_choices));
  library.impl("_id", TORCH_BOX(&Documented::id));
  library.impl("_device", TORCH_BOX(&device));
  library.impl("_release", TORCH_BOX(&release_spectra));
  library.impl("_kept", TORCH_BOX(&all_kept));
  library.impl("_measure_again", TORCH_BOX(&ignore_kept_choices));
  library.impl("_build", TORCH_BOX(&build));
}

}  // namespace twiddle
