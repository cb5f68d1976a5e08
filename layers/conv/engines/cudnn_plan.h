#pragma once
#include <memory>
#include <vector>

#include "framework/convolution.h"
#include "layers/conv/engines/cudnn_library.h"
#include "layers/conv/engines/plan_name_of_cudnn.h"

namespace twiddle {

// Where a pass's tensors lie on the device; the pass says which one is written.
struct ConvPointers {
  const void *x, *w, *y;
};

// What cuDNN calls a plan or an algorithm: one pass of one problem, ready to run.
struct CudnnPlan {
  CudnnPlanName name;
  bool deterministic = true;  // equal inputs give bitwise identical results
  std::size_t workspace = 0;  // bytes of scratch that run() is handed

  virtual ~CudnnPlan() = default;
  virtual void run(cudnnHandle_t handle, Stream& stream, const ConvPointers& at, void* scratch) const = 0;
  // The same on operands that lie in the plan's own layout: nothing is changed before and after.
  virtual void run_in_own_layout(cudnnHandle_t handle, Stream& stream, const ConvPointers& at, void* scratch) const {
    run(handle, stream, at, scratch);
  }
};
using CudnnPlans = std::vector<std::unique_ptr<CudnnPlan>>;

// The older calls' algorithms, on plain tensors: implicit_gemm, fft_tiling, winograd_nonfused ...
CudnnPlans cudnn_algorithms(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass);

// The graph API's engines that its heuristics name, best guess first: at most `most` of each heuristic.
enum class CudnnLayout { nchw, nhwc };
CudnnPlans cudnn_graphs(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass, CudnnLayout layout, int most);

// A plan made again from its name; null, or an Error, where there is none here.
std::unique_ptr<CudnnPlan> cudnn_algorithm(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass,
                                           const CudnnPlanName& name);
std::unique_ptr<CudnnPlan> cudnn_graph(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass,
                                       const CudnnPlanName& name);

}  // namespace twiddle
