#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "layers/conv/engines/cudnn_plan.h"

namespace twiddle {

namespace {

struct Algorithm {
  const char* family;
  std::array<int, 3> numbers;                              // by pass; `none`: the pass has no such algorithm
  std::array<bool, 3> deterministic = {true, true, true};  // by pass
};
constexpr int none = -1;

// The gradients' algorithms have numbers for names: ALGO_0 and ALGO_3 sum with atomics and compute as the implicit
// products of forward do, without and with indices computed beforehand; ALGO_1 is deterministic.
const Algorithm algorithms[] = {
    {"implicit_gemm",
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0},
     {true, false, false}},
    {"implicit_precomp_gemm",
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}},
    {"gemm", {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, none, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3}, {true, true, false}},
    {"fft",
     {CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT}},
    {"fft_tiling",
     {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING}},
    {"winograd", {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, none}},
    {"winograd_nonfused",
     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED}}};

// A problem in cuDNN's terms.
struct Descriptors {
  Descriptors(const ConvProblem& p, cudnnMathType_t math) {
    const Cudnn& library = cudnn();
    check(library.create_tensor(x.put()));
    check(library.create_tensor(y.put()));
    check(library.create_filter(w.put()));
    check(library.create_convolution(convolution.put()));
    check(library.set_tensor(x.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, p.batch, p.channels, p.height, p.width));
    check(library.set_tensor(y.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, p.batch, p.filters, p.out_height(),
                             p.out_width()));
    check(library.set_filter(w.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, p.filters, p.channels / p.groups, p.kernel_h,
                             p.kernel_w));
    check(library.set_convolution(convolution.get(), p.pad_h, p.pad_w, p.stride_h, p.stride_w, p.dilation, p.dilation,
                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    check(library.set_groups(convolution.get(), p.groups));
    check(library.set_math(convolution.get(), math));
  }
  CudnnTensor x, y;
  CudnnFilter w;
  CudnnConvolution convolution;
};

struct AlgorithmPlan : CudnnPlan {
  void run(cudnnHandle_t handle, Stream&, const ConvPointers& at, void* scratch) const override {
    const Descriptors& d = *descriptors;
    const float one = 1, zero = 0;
    const auto write = [](const void* result) { return const_cast<void*>(result); };
    switch (pass) {
      case ConvPass::forward:
        return check(cudnn().forward(handle, &one, d.x.get(), at.x, d.w.get(), at.w, d.convolution.get(),
                                     static_cast<cudnnConvolutionFwdAlgo_t>(number), scratch, workspace, &zero,
                                     d.y.get(), write(at.y)));
      case ConvPass::backward_input:
        return check(cudnn().backward_input(handle, &one, d.w.get(), at.w, d.y.get(), at.y, d.convolution.get(),
                                            static_cast<cudnnConvolutionBwdDataAlgo_t>(number), scratch, workspace,
                                            &zero, d.x.get(), write(at.x)));
      case ConvPass::backward_weight:
        return check(cudnn().backward_weight(handle, &one, d.x.get(), at.x, d.y.get(), at.y, d.convolution.get(),
                                             static_cast<cudnnConvolutionBwdFilterAlgo_t>(number), scratch, workspace,
                                             &zero, d.w.get(), write(at.w)));
    }
  }
  std::shared_ptr<const Descriptors> descriptors;
  ConvPass pass{};
  int number = 0;
};

// Empty where the algorithm cannot do this.
std::optional<std::size_t> workspace_of(cudnnHandle_t handle, const Descriptors& d, ConvPass pass, int number) {
  std::size_t bytes = 0;
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  switch (pass) {
    case ConvPass::forward:
      status = cudnn().forward_workspace(handle, d.x.get(), d.w.get(), d.convolution.get(), d.y.get(),
                                         static_cast<cudnnConvolutionFwdAlgo_t>(number), &bytes);
      break;
    case ConvPass::backward_input:
      status = cudnn().backward_input_workspace(handle, d.w.get(), d.y.get(), d.convolution.get(), d.x.get(),
                                                static_cast<cudnnConvolutionBwdDataAlgo_t>(number), &bytes);
      break;
    case ConvPass::backward_weight:
      status = cudnn().backward_weight_workspace(handle, d.x.get(), d.y.get(), d.convolution.get(), d.w.get(),
                                                 static_cast<cudnnConvolutionBwdFilterAlgo_t>(number), &bytes);
      break;
  }
  if (status != CUDNN_STATUS_SUCCESS) return {};
  return bytes;
}

}  // namespace

CudnnPlans cudnn_algorithms(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass) {
  if (storage_of(problem.precision) != DType::f32) return {};  // the graph API has more plans for them
  // These calls count elements in 32 bits.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (count_of(problem.input_shape()) > most || count_of(problem.output_shape()) > most) return {};
  // FMA alone keeps TF32 off: the default math of cuDNN allows it.
  std::vector<cudnnMathType_t> maths{CUDNN_FMA_MATH};
  if (problem.precision != Precision::fp32) maths.push_back(CUDNN_TENSOR_OP_MATH);
  CudnnPlans plans;
  for (const cudnnMathType_t math : maths) {
    const auto descriptors = std::make_shared<const Descriptors>(problem, math);
    for (const Algorithm& algorithm : algorithms) {
      const int number = algorithm.numbers[static_cast<std::size_t>(pass)];
      if (number == none) continue;
      const std::optional<std::size_t> workspace = workspace_of(handle, *descriptors, pass, number);
      if (!workspace) continue;
      auto plan = std::make_unique<AlgorithmPlan>();
      plan->name = {algorithm.family, math == CUDNN_TENSOR_OP_MATH};
      plan->deterministic = algorithm.deterministic[static_cast<std::size_t>(pass)];
      plan->workspace = *workspace;
      plan->descriptors = descriptors;
      plan->pass = pass;
      plan->number = number;
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

std::unique_ptr<CudnnPlan> cudnn_algorithm(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass,
                                           const CudnnPlanName& name) {
  for (auto& plan : cudnn_algorithms(handle, problem, pass))
    if (plan->name == name) return std::move(plan);
  return nullptr;
}

}  // namespace twiddle
