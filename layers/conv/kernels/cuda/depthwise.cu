#include "layers/conv/kernels/cuda/depthwise.h"

#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "layers/conv/kernels/cuda/depthwise_arguments.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace depthwise {
namespace {

// compute(round, planes) for each round of a block: while its threads compute one, the planes of the next come to the
// other buffer, where there is one. `loads`: the thread, or what it loads in each round.
template <class Blocks, class Loads, class Compute>
__device__ void for_each_round(const Blocks& blocks, const typename Blocks::Place& at, const Loads& loads,
                               float* buffers, const Compute& compute) {
  const int ahead = blocks.buffers() - 1;
  const auto buffer = [&](int round) { return buffers + (round & ahead) * blocks.buffer_floats(); };
  const auto wait_for_all = [] {
    small_fft::wait_group<0>();
    __syncthreads();
  };
  for (int round = -ahead; round < 0 || blocks.has_round(at, round); ++round) {
    const int next = round + ahead;
    if (next > 0) wait_for_all();  // for planes in flight, and for threads that still read a buffer
    if (blocks.has_round(at, next)) blocks.load(at, next, loads, buffer(next));
    small_fft::commit_group();
    if (ahead == 0) wait_for_all();
    if (round >= 0) compute(round, buffer(round));
  }
  __syncthreads();
}

// For Correlation and RowCorrelation.
template <class Blocks>
__global__ void __launch_bounds__(most_threads, correlation_warps * 32 / most_threads)
    correlation_kernel(const Blocks blocks) {
  extern __shared__ Four shared[];
  float *const taps = reinterpret_cast<float*>(shared), *const buffers = taps + blocks.taps_staged();
  const OneThread thread{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const auto at = blocks.place(static_cast<int>(blockIdx.x));
  clear(blocks.staged_floats(), thread, taps);
  __syncthreads();
  blocks.load_taps(at, thread, taps);
  const auto patch = blocks.patch_of(thread);
  for_each_round(blocks, at, blocks.loads_of(at, thread), buffers,
                 [&](int round, const float* planes) { blocks.compute(at, round, patch, planes, taps); });
}

template <int N, int K>
__global__ void __launch_bounds__((CellCorrelation<N, K>::threads()), (CellCorrelation<N, K>::blocks_at_once))
    cell_correlation_kernel(const CellCorrelation<N, K> blocks) {
  extern __shared__ Four shared[];
  float *const taps = reinterpret_cast<float*>(shared), *const buffers = taps + blocks.taps_staged();
  const OneThread thread{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const auto at = blocks.place(static_cast<int>(blockIdx.x));
  blocks.load_taps(at, thread, taps);
  for_each_round(blocks, at, thread, buffers, [&](int round, float* cells) {
    typename CellCorrelation<N, K>::Held held;
    blocks.take(at, thread, cells, taps, held);
    __syncthreads();
    blocks.put(at, thread, held, taps, cells);
    __syncthreads();
    blocks.store(at, round, thread, cells);
  });
}

template <int N>
__global__ void __launch_bounds__(WholePlane<N>::threads) whole_correlation_kernel(const WholeCorrelation<N> blocks) {
  extern __shared__ Four shared[];
  float* const staged = reinterpret_cast<float*>(shared);
  const OneThread thread{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const auto at = blocks.place(static_cast<int>(blockIdx.x));
  clear(blocks.staged_floats, thread, staged);
  __syncthreads();
  blocks.load(at, thread, staged);
  small_fft::commit_group();
  small_fft::wait_group<0>();
  __syncthreads();
  typename WholeCorrelation<N>::Row row;
  blocks.compute(at, thread, staged, row);
  __syncthreads();
  blocks.gather(thread, row, staged);
  __syncthreads();
  blocks.store(at, thread, staged);
}

// Returns the warp's sum of one value per lane. In each step, a lane sends half of its values and keeps the other half.
template <int Count>
__device__ float sum_for_lane(const float (&values)[Count], int lane) {
  constexpr int half = Count / 2;
  const bool upper = (lane & half) != 0;
  float sums[half];
#pragma unroll
  for (int i = 0; i < half; ++i) {
    const float sent = upper ? values[i] : values[i + half], kept = upper ? values[i + half] : values[i];
    sums[i] = kept + __shfl_xor_sync(0xffffffffu, sent, half);
  }
  if constexpr (half == 1)
    return sums[0];
  else
    return sum_for_lane(sums, lane);
}

template <int Count>
__device__ void sum_over_warp(const float (&values)[Count], int lane, float* sums) {
  constexpr int lanes = 32;
#pragma unroll
  for (int first = 0; first < Count; first += lanes) {
    float some[lanes];
#pragma unroll
    for (int i = 0; i < lanes; ++i) some[i] = first + i < Count ? values[first + i] : 0;
    const float sum = sum_for_lane(some, lane);
    if (first + lane < Count) sums[first + lane] = sum;
  }
}

template <class Blocks, int MostThreads, int BlocksAtOnce = 1>
__global__ void __launch_bounds__(MostThreads, BlocksAtOnce) weight_kernel(const Blocks blocks) {
  extern __shared__ Four shared[];
  float* const staged = reinterpret_cast<float*>(shared);
  const OneThread thread{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const auto at = blocks.place(static_cast<int>(blockIdx.x));
  typename Blocks::Sums sums = {};
  if constexpr (Blocks::padded) {
    clear(blocks.staged_floats(), thread, staged);
    __syncthreads();
  }
  const auto share = blocks.share_of(thread);
  for_each_round(blocks, at, thread, staged,
                 [&](int round, const float* planes) { blocks.add(at, round, thread, share, planes, sums); });
  constexpr int lanes = 32;
  sum_over_warp(sums.values, thread.number % lanes, staged + thread.number / lanes * Blocks::sums_each);
  __syncthreads();
  blocks.store(at, thread, staged);
}

// For RowWeightSums and ChannelWeightSums.
template <class Blocks, int MostThreads, int BlocksAtOnce = 1>
__global__ void __launch_bounds__(MostThreads, BlocksAtOnce) gathered_weight_kernel(const Blocks blocks) {
  extern __shared__ Four shared[];
  float* const staged = reinterpret_cast<float*>(shared);
  const OneThread thread{static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const auto at = blocks.place(static_cast<int>(blockIdx.x));
  typename Blocks::Sums sums = {};
  if constexpr (Blocks::padded) {
    clear(blocks.staged_floats(), thread, staged);
    __syncthreads();
  }
  const auto share = blocks.share_of(thread);
  for_each_round(blocks, at, thread, staged,
                 [&](int round, const float* planes) { blocks.add(at, round, share, planes, sums); });
  blocks.gather(thread, sums, staged);
  __syncthreads();
  blocks.store(at, thread, staged);
}

template <class Blocks>
void launch(Stream& stream, void (*kernel)(Blocks), const Blocks& blocks, int threads, int floats) {
  constexpr int granted = 48 << 10;  // more shared memory needs an opt-in
  const int bytes = floats * static_cast<int>(sizeof(float));
  if (bytes > granted) detail::allow_all_shared_memory(kernel, stream.device());
  kernel<<<static_cast<unsigned>(blocks.blocks()), static_cast<unsigned>(threads), static_cast<std::size_t>(bytes),
           detail::native(stream)>>>(blocks);
  detail::check_launch();
}

template <int K, int S>
void launch(Stream& stream, const Correlation<K, S>& blocks) {
  launch(stream, correlation_kernel<Correlation<K, S>>, blocks, blocks.threads(), blocks.staged_floats());
}
void launch(Stream& stream, const RowCorrelation& blocks) {
  launch(stream, correlation_kernel<RowCorrelation>, blocks, blocks.threads(), blocks.staged_floats());
}
void launch(Stream& stream, const RowWeightSums& blocks) {
  launch(stream, gathered_weight_kernel<RowWeightSums, most_threads>, blocks, blocks.threads(), blocks.staged_floats());
}
template <int N, int K>
void launch(Stream& stream, const CellCorrelation<N, K>& blocks) {
  launch(stream, cell_correlation_kernel<N, K>, blocks, blocks.threads(), blocks.staged_floats());
}
// Returns the maximum per block.
int shared_bytes_of_block(const Stream& stream) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, stream.device().index));
  return bytes;
}

template <class Work>
void launch(Stream& stream, CellWeightSums<Work> blocks) {
  using Blocks = CellWeightSums<Work>;
  constexpr int two_buffers = 2 * Blocks::buffer_floats() * static_cast<int>(sizeof(float));
  blocks.two_buffers = Work::two_buffers && shared_bytes_of_block(stream) >= two_buffers;
  launch(stream, weight_kernel<Blocks, Blocks::threads(), Work::blocks_at_once>, blocks, blocks.threads(),
         blocks.staged_floats());
}
template <int N, int K>
void launch(Stream& stream, const ChannelWeightSums<N, K>& blocks) {
  using Blocks = ChannelWeightSums<N, K>;
  launch(stream, gathered_weight_kernel<Blocks, Blocks::threads(), Blocks::blocks_at_once>, blocks, blocks.threads(),
         blocks.staged_floats());
}
template <int N>
void launch(Stream& stream, const WholeCorrelation<N>& blocks) {
  launch(stream, whole_correlation_kernel<N>, blocks, blocks.threads, blocks.staged_floats);
}
template <int K, int G>
void launch(Stream& stream, const WeightSums<K, G>& blocks) {
  launch(stream, weight_kernel<WeightSums<K, G>, most_threads>, blocks, blocks.threads(), blocks.staged_floats());
}
template <int N>
void launch(Stream& stream, const WholeWeightSums<N>& blocks) {
  constexpr int threads = WholePlane<N>::threads;
  launch(stream, weight_kernel<WholeWeightSums<N>, threads>, blocks, threads, blocks.staged_floats());
}

void forward(Stream& stream, const ConvProblem& p, ConvOperands& operands) {
  with_forward_blocks(p, operands.x.read(), operands.w.read(), read_if_defined(operands.bias), operands.relu,
                      operands.y.write(), [&](const auto& blocks) { launch(stream, blocks); });
}

void backward_input(Stream& stream, const ConvProblem& p, ConvOperands& operands) {
  with_backward_input_blocks(p, operands.y.read(), read_if_defined(operands.mask), operands.w.read(),
                             operands.x.write(), [&](const auto& blocks) { launch(stream, blocks); });
}

void backward_weight(Stream& stream, const ConvProblem& p, ConvOperands& operands) {
  const std::shared_ptr<void> scratch = stream.allocate(depthwise_scratch_on_gpu(p, ConvPass::backward_weight));
  const WeightResults results{operands.w.write(), operands.bias.defined() ? operands.bias.write() : nullptr,
                              static_cast<float*>(scratch.get())};
  with_weight_blocks(p, operands.x.read(), operands.y.read(), read_if_defined(operands.mask), results,
                     [&](const auto& blocks) {
                       launch(stream, blocks);
                       const SumParts sums = sum_of_parts(p, results);
                       if (blocks.parts() > 1) reduce_columns(stream, blocks.parts(), sums.columns, sums);
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
