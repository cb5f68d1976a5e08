#include "layers/conv/cuda/depthwise.h"

#include "framework/error.h"
#include "layers/conv/cuda/depthwise_arguments.h"

namespace twiddle {

namespace depthwise {
namespace {

template <int K, int S>
__global__ void __launch_bounds__(most_threads) correlation_kernel(const Correlation<K, S> blocks) {
  extern __shared__ Four shared[];
  float* const staged = reinterpret_cast<float*>(shared);
  const OneThread thread{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const auto at = blocks.place(blockIdx.x);
  blocks.load(at, thread, staged);
  __syncthreads();
  blocks.compute(at, thread, staged);
}

__device__ float sum_of_warp(float sum) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
  return sum;
}

template <int K, int G>
__global__ void __launch_bounds__(most_threads) weight_kernel(const WeightSums<K, G> blocks) {
  extern __shared__ Four shared[];
  float* const staged = reinterpret_cast<float*>(shared);
  const OneThread thread{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const auto at = blocks.place(blockIdx.x);
  typename WeightSums<K, G>::Sums sums = {};
  for (int round = 0; blocks.has_round(at, round); ++round) {
    blocks.load(at, round, thread, staged);
    __syncthreads();
    blocks.add(at, round, thread, staged, sums);
    __syncthreads();
  }
#pragma unroll
  for (int g = 0; g < G; ++g)
#pragma unroll
    for (int kx = 0; kx < K; ++kx) sums.taps[g][kx] = sum_of_warp(sums.taps[g][kx]);
  sums.bias = sum_of_warp(sums.bias);
  constexpr int warp = WeightSums<K, G>::warp;
  if (thread.number % warp == 0) blocks.keep(thread.number / warp, sums, staged);
  __syncthreads();
  blocks.store(at, thread, staged);
}

template <int K, int S>
void launch(Stream& stream, const Correlation<K, S>& blocks) {
  const int threads = std::min(most_threads, in_warps(blocks.images * blocks.patches()));
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(blocks.staged_floats());
  correlation_kernel<<<static_cast<unsigned>(blocks.blocks()), threads, bytes, detail::native(stream)>>>(blocks);
  detail::check_launch();
}

template <int K, int G>
void launch(Stream& stream, const WeightSums<K, G>& blocks) {
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(blocks.staged_floats());
  weight_kernel<<<static_cast<unsigned>(blocks.blocks()), blocks.threads(), bytes, detail::native(stream)>>>(blocks);
  detail::check_launch();
}

const float* read_if_defined(const Tensor& tensor) {
  return tensor.defined() ? tensor.read() : nullptr;
}

void forward(Stream& stream, const ConvProblem& p, ConvOperands& operands) {
  const float *const x = operands.x.read(), *const w = operands.w.read(), *const bias = read_if_defined(operands.bias);
  float* const y = operands.y.write();
  with_kernel(std::max(p.kernel_h, p.kernel_w), [&]<int K>() {
    if (p.stride_h == 1)
      launch(stream, forward_blocks<K, 1>(p, x, w, bias, operands.relu, y));
    else
      launch(stream, forward_blocks<K, 2>(p, x, w, bias, operands.relu, y));
  });
}

void backward_input(Stream& stream, const ConvProblem& p, ConvOperands& operands) {
  const float *const grad_y = operands.y.read(), *const w = operands.w.read();
  float* const grad_x = operands.x.write();
  with_kernel(std::max(p.kernel_h, p.kernel_w), [&]<int K>() {
    launch(stream, backward_input_blocks<K>(p, grad_y, read_if_defined(operands.mask), w, grad_x));
  });
}

void backward_weight(Stream& stream, const ConvProblem& p, ConvOperands& operands) {
  const float *const x = operands.x.read(), *const grad_y = operands.y.read();
  float *const weight = operands.w.write(), *const bias = operands.bias.defined() ? operands.bias.write() : nullptr;
  const std::shared_ptr<void> scratch = stream.allocate(depthwise_scratch_on_gpu(p, ConvPass::backward_weight));
  auto* const partial = static_cast<float*>(scratch.get());
  with_kernel(p.kernel_w, [&]<int K>() {
    const auto blocks =
        weight_blocks<K, rows_of_taps<K>>(p, x, grad_y, read_if_defined(operands.mask), bias != nullptr, partial);
    launch(stream, blocks);
    const SumParts sums = sum_of_parts(p, partial, weight, bias);
    reduce_columns(stream, blocks.parts(), sums.columns, sums);
  });
}

}  // namespace
}  // namespace depthwise

bool depthwise_fits_gpu(const ConvProblem& problem) {
  return depthwise::fits(problem);
}

void depthwise_on_gpu(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  switch (pass) {
    case ConvPass::forward:
      return depthwise::forward(stream, problem, operands);
    case ConvPass::backward_input:
      return depthwise::backward_input(stream, problem, operands);
    case ConvPass::backward_weight:
      return depthwise::backward_weight(stream, problem, operands);
  }
}

std::size_t depthwise_scratch_on_gpu(const ConvProblem& problem, ConvPass pass) {
  if (pass != ConvPass::backward_weight) return 0;
  return sizeof(float) * static_cast<std::size_t>(depthwise::partial_floats(problem));
}

bool depthwise_sums_bias_on_gpu(const ConvProblem& problem) {
  return depthwise::sums_bias(problem);
}

}  // namespace twiddle
