#pragma once
#include <iterator>
#include <utility>

#include "apps/bench/cuda/batched_kernels.h"
#include "apps/bench/cuda/tuned_on_h200.h"
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/resident_blocks.h"

namespace twiddle::small_fft {

// Runs all steps of a thread, with a barrier of its block between two steps.
template <int Sign, int Step = 0, class Block, class Arguments>
__device__ void take_steps(Block& thread, const Arguments& arguments, typename Block::Shared& shared) {
  if constexpr (Step < steps_of<Sign, Block>) {
    if constexpr (Step > 0 && Block::threads == 32) __syncwarp();
    if constexpr (Step > 0 && Block::threads != 32) __syncthreads();
    take_step<Sign, Step>(thread, arguments, shared);
    take_steps<Sign, Step + 1>(thread, arguments, shared);
  }
}

// launch_dependents() comes before the wait, unlike in planes/, where cuBLAS products follow. Here the next kernel is
// another batched transform, which waits by itself, or a normal launch, which starts after this grid has finished.
// Before its wait, a block prepares whatever does not depend on earlier kernels.
template <class Block, int Sign, class Arguments, int MinBlocks>
__global__ void __launch_bounds__(Block::threads, resident_blocks<Block::threads>(MinBlocks))
    block_kernel(const Arguments arguments, bool dependents_early) {
  extern __shared__ ComplexPair memory[];
  if (dependents_early) launch_dependents();
  Block thread(blockIdx.x, static_cast<int>(threadIdx.x));
  if constexpr (requires { thread.prepare(arguments); }) thread.prepare(arguments);
  grid_dependency_wait();
  take_steps<Sign>(thread, arguments, *reinterpret_cast<typename Block::Shared*>(memory));
}

template <class Block, int Sign, class Arguments, int MinBlocks>
void launch_blocks(Stream& stream, const Arguments& arguments) {
  launch_dependent<block_kernel<Block, Sign, Arguments, MinBlocks>>(
      stream, (arguments.count + Block::count - 1) / Block::count, Block::threads, sizeof(typename Block::Shared),
      arguments);
}

template <class Block, int MinBlocks>
BatchKernels batch_kernels(int height, int width, std::int64_t most, std::int64_t most_by_bin) {
  return {height,
          width,
          most,
          most_by_bin,
          sizeof(typename Block::Shared),
          launch_blocks<Block, forwards, BatchForward, MinBlocks>,
          launch_blocks<Block, backwards, BatchInverse, MinBlocks>};
}

template <class Block, int MinBlocks>
BatchKernels batch_kernels(int height, int width, std::int64_t most = any_number) {
  return batch_kernels<Block, MinBlocks>(height, width, most, most);
}

// Calls add.operator()<shape>() for each shape of a table (tuned_on_h200.h): each shape has separate kernels.
template <const auto& Shapes, class Add>
void for_each_shape(const Add& add) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (add.template operator()<Shapes[I]>(), ...);
  }
  (std::make_index_sequence<std::size(Shapes)>());
}

}  // namespace twiddle::small_fft
