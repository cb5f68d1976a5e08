#pragma once
#include "fft/cuda/bulk_store.h"
#include "fft/cuda/plane_kernels.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle::small_fft {

template <int H, int W, int P, int BlocksAtOnce>
__global__ void __launch_bounds__((PlaneBlock<H, W, P>::threads), BlocksAtOnce)
    forward_kernel(const ForwardArguments arguments) {
  using Block = ForwardBlock<H, W, P>;
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  Block::columns(arguments, blockIdx.x, thread, shared);
  __syncthreads();
  Block::rows(arguments, blockIdx.x, thread, shared);
}

template <int H, int W, class Bins, int BlocksAtOnce>
__global__ void __launch_bounds__((InverseBlock<H, W, Bins>::threads), BlocksAtOnce)
    inverse_kernel(const typename Bins::Arguments arguments) {
  using Block = InverseBlock<H, W, Bins>;
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  Block::rows(arguments, blockIdx.x, thread, shared);
  __syncthreads();
  Complex v[H];
  Block::columns(arguments, blockIdx.x, thread, shared, v);
  if (!arguments.gather) {
    Block::store_columns(arguments, blockIdx.x, thread, shared, v);
    return;
  }
  __syncthreads();  // what is gathered goes to where the rows were
  Block::gather(arguments, blockIdx.x, thread, shared, v);
  float* const target = arguments.target + shared.places[0].plane;
  if (!store_in_bulk(target, shared.stage, Block::gathered(arguments, blockIdx.x)))
    Block::store_gathered(arguments, blockIdx.x, thread, shared);
}

template <int Threads, int SharedBytes, class Arguments>
void launch(Stream& stream, void (*kernel)(Arguments), std::int64_t blocks, const Arguments& arguments) {
  constexpr int granted = 48 << 10;  // without asking
  if constexpr (SharedBytes > granted)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SharedBytes));
  require(blocks < std::int64_t(1) << 31, arguments.tiles.count(), " planes are more than one launch can take");
  if (blocks == 0) return;
  kernel<<<static_cast<unsigned>(blocks), Threads, SharedBytes, twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

template <int H, int W, class Bins, int BlocksAtOnce>
void launch_inverse(Stream& stream, const typename Bins::Arguments& arguments) {
  using Block = InverseBlock<H, W, Bins>;
  launch<Block::threads, sizeof(typename Block::Shared)>(stream, inverse_kernel<H, W, Bins, BlocksAtOnce>,
                                                         Bins::blocks(arguments), arguments);
}

// How many planes a block takes, and how many blocks a multiprocessor's registers should have room for.
struct BlockShape {
  int planes, at_once;
};

// Forward and inverse each have the shape that measured fastest on an H200; the inverse of so many planes that every
// multiprocessor gets dozens of blocks may have another.
template <int H, int W, BlockShape Forward, BlockShape Inverse = Forward, BlockShape OfMany = Inverse>
PlaneKernels plane_kernels() {
  return {H, W, PlaneSize<H, W>::bins,
          [](Stream& stream, const ForwardArguments& arguments) {
            using Block = ForwardBlock<H, W, Forward.planes>;
            const std::int64_t blocks = (arguments.tiles.count() + Forward.planes - 1) / Forward.planes;
            launch<Block::threads, sizeof(typename Block::Shared)>(
                stream, forward_kernel<H, W, Forward.planes, Forward.at_once>, blocks, arguments);
          },
          [](Stream& stream, const InverseArguments& arguments) {
            constexpr std::int64_t many = 1 << 16;
            if (arguments.tiles.count() < many)
              launch_inverse<H, W, StoredBins<Inverse.planes>, Inverse.at_once>(stream, arguments);
            else
              launch_inverse<H, W, StoredBins<OfMany.planes>, OfMany.at_once>(stream, arguments);
          }};
}

}  // namespace twiddle::small_fft
