#pragma once
#include "fft/cuda/batched/batched_kernels.h"
#include "fft/cuda/batched/tuned_on_h200.h"
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/resident_blocks.h"

namespace twiddle::small_fft {

// The steps of a block, one after the other, with a barrier before each but the first.
template <class Block, int Step = 0>
__device__ void take_steps(const typename Block::Arguments& arguments, typename Block::Shared& shared,
                           typename Block::Registers& registers) {
  if constexpr (Step < Block::steps) {
    if constexpr (Step > 0 && Block::threads == 32) __syncwarp();
    if constexpr (Step > 0 && Block::threads != 32) __syncthreads();
    Block::step(Index<Step>{}, arguments, blockIdx.x, static_cast<int>(threadIdx.x), shared, registers);
    take_steps<Block, Step + 1>(arguments, shared, registers);
  }
}

// launch_dependents() comes before the wait, other than in planes/, where products of cuBLAS follow: the next kernel is
// another batched transform, which waits itself, or one without a dependent launch, which starts when this grid has
// ended. What a block can prepare without the results of earlier kernels it does before its wait.
template <class Block, int MinBlocks>
__global__ void __launch_bounds__(Block::threads, resident_blocks<Block::threads>(MinBlocks))
    block_kernel(const typename Block::Arguments arguments, bool dependents_early) {
  extern __shared__ ComplexPair memory[];
  if (dependents_early) launch_dependents();
  typename Block::Registers registers;
  if constexpr (requires { Block::prepare(arguments, 0, registers); })
    Block::prepare(arguments, static_cast<int>(threadIdx.x), registers);
  grid_dependency_wait();
  take_steps<Block>(arguments, *reinterpret_cast<typename Block::Shared*>(memory), registers);
}

// InBlock: how many of the arguments' count a block takes.
template <class Block, int InBlock, int MinBlocks>
void launch_blocks(Stream& stream, const typename Block::Arguments& arguments) {
  launch_dependent<block_kernel<Block, MinBlocks>>(stream, (arguments.count + InBlock - 1) / InBlock, Block::threads,
                                                   sizeof(typename Block::Shared), arguments);
}

template <class Forward, class Inverse, int MinBlocks>
BatchKernels batch_kernels(int height, int width, std::int64_t most, std::int64_t most_by_bin) {
  return {height,
          width,
          most,
          most_by_bin,
          launch_blocks<Forward, Forward::count, MinBlocks>,
          launch_blocks<Inverse, Inverse::count, MinBlocks>};
}

template <class Forward, class Inverse, int MinBlocks>
BatchKernels batch_kernels(int height, int width, std::int64_t most = any_number) {
  return batch_kernels<Forward, Inverse, MinBlocks>(height, width, most, most);
}

}  // namespace twiddle::small_fft
