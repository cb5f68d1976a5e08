#pragma once
#include "fft/cuda/batched/batched_kernels.h"
#include "fft/cuda/batched/tuned_on_h200.h"
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/resident_blocks.h"

namespace twiddle::small_fft {

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

template <class Block, int BlocksAtOnce>
__global__ void __launch_bounds__(Block::threads, resident_blocks<Block::threads>(BlocksAtOnce))
    block_kernel(const typename Block::Arguments arguments, bool next_may_begin) {
  extern __shared__ ComplexPair memory[];
  if (next_may_begin) let_next_kernel_begin();
  typename Block::Registers registers;
  if constexpr (requires { Block::prepare(arguments, 0, registers); })
    Block::prepare(arguments, static_cast<int>(threadIdx.x), registers);
  await_earlier_kernels();
  take_steps<Block>(arguments, *reinterpret_cast<typename Block::Shared*>(memory), registers);
}

// `InBlock` of the arguments' count a block.
template <class Block, int InBlock, int BlocksAtOnce>
void launch_blocks(Stream& stream, const typename Block::Arguments& arguments) {
  launch_early<block_kernel<Block, BlocksAtOnce>>(stream, (arguments.count + InBlock - 1) / InBlock, Block::threads,
                                                  sizeof(typename Block::Shared), arguments);
}

template <class Forward, class Inverse, int BlocksAtOnce>
BatchKernels batch_kernels(int height, int width, std::int64_t most, std::int64_t most_by_bin) {
  return {height,
          width,
          most,
          most_by_bin,
          launch_blocks<Forward, Forward::count, BlocksAtOnce>,
          launch_blocks<Inverse, Inverse::count, BlocksAtOnce>};
}

template <class Forward, class Inverse, int BlocksAtOnce>
BatchKernels batch_kernels(int height, int width, std::int64_t most = any_number) {
  return batch_kernels<Forward, Inverse, BlocksAtOnce>(height, width, most, most);
}

}  // namespace twiddle::small_fft
