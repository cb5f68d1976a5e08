#pragma once
#include "fft/cuda/device/resident_blocks.h"
#include "fft/cuda/products/gemm_block.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle::small_fft {

// A pipeline of Tile::stages stages: at any time the copies of stages - 1 steps are in flight or have arrived. A group
// is committed in every round, even an empty one at the end, so that the number of groups in flight tells which have
// arrived.
template <class Tile, class Products, int MinBlocks>
__global__ void __launch_bounds__(Tile::threads, resident_blocks<Tile::threads>(MinBlocks))
    gemm_kernel(const typename GemmBlock<Tile, Products>::Arguments arguments) {
  using Block = GemmBlock<Tile, Products>;
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  auto self = Block::begin(arguments, blockIdx.x, static_cast<int>(threadIdx.x), shared);
  constexpr int ahead = Tile::stages - 1;
  for (int step = 0; step < ahead; ++step) {
    Block::copy(arguments, self, shared, 0, step);
    commit_group();
  }
  for (int step = 0; self.left > 0; ++step) {
    wait_group<ahead - 1>();
    __syncthreads();  // every thread's copies of this step have arrived, and the stage of the last step is free
    Block::copy(arguments, self, shared, step, ahead);
    commit_group();
    Block::multiply(self, shared, step);
    if (Block::stores(self, step)) Block::store(arguments, self, shared, step);
  }
}

template <class Tile, class Products, int MinBlocks>
void launch_gemm(Stream& stream, const typename GemmBlock<Tile, Products>::Arguments& arguments) {
  constexpr int granted = 48 << 10;  // more dynamic shared memory must be requested
  constexpr int bytes = sizeof(typename GemmBlock<Tile, Products>::Shared);
  const auto kernel = gemm_kernel<Tile, Products, MinBlocks>;
  const cudaStream_t native = twiddle::detail::native(stream);
  if constexpr (bytes > granted)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const std::int64_t blocks = arguments.blocks();
  require(blocks < std::int64_t(1) << 31, blocks, " tiles are more than one launch can take");
  if (blocks == 0) return;
  kernel<<<static_cast<unsigned>(blocks), Tile::threads, bytes, native>>>(arguments);
  twiddle::detail::check_launch();
}

// A product for each part of k, to c as a spectrum after the other.
template <class Tile, template <bool> class Products, int MinBlocks>
void multiply(Stream& stream, const FrequencyGemm& gemm, std::int64_t part, const void* a, const void* b, void* c) {
  if (gemm.conjugate_a != gemm.conjugate_b) {
    using Block = GemmBlock<Tile, Products<true>>;
    launch_gemm<Tile, Products<true>, MinBlocks>(stream, Block::arguments(gemm, part, a, b, c));
  } else {
    using Block = GemmBlock<Tile, Products<false>>;
    launch_gemm<Tile, Products<false>, MinBlocks>(stream, Block::arguments(gemm, part, a, b, c));
  }
}

}  // namespace twiddle::small_fft
