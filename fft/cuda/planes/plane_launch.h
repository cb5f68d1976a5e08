#pragma once
#include "fft/cuda/device/bulk_store.h"
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/resident_blocks.h"
#include "fft/cuda/planes/fbfft_kernels.h"
#include "fft/cuda/planes/tuned_on_h200.h"

namespace twiddle::small_fft {

template <int H, int W, int P, int BlocksAtOnce>
__global__ void __launch_bounds__((PlaneBlock<H, W, P>::threads),
                                  (resident_blocks<PlaneBlock<H, W, P>::threads>(BlocksAtOnce)))
    forward_kernel(const ForwardArguments arguments, bool next_may_begin) {
  using Block = ForwardBlock<H, W, P>;
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  await_earlier_kernels();
  if (next_may_begin) let_next_kernel_begin();
  Block::columns(arguments, blockIdx.x, thread, shared);
  __syncthreads();
  Block::rows(arguments, blockIdx.x, thread, shared);
}

__device__ inline void bring_near(const void* line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

template <int H, int W, class Bins, int BlocksAtOnce, bool Ahead>
__global__ void __launch_bounds__((InverseBlock<H, W, Bins>::threads),
                                  (resident_blocks<InverseBlock<H, W, Bins>::threads>(BlocksAtOnce)))
    inverse_kernel(const typename Bins::Arguments arguments, bool next_may_begin) {
  using Block = InverseBlock<H, W, Bins>;
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  await_earlier_kernels();
  if (next_may_begin) let_next_kernel_begin();
  Block::rows(arguments, blockIdx.x, thread, shared);
  if constexpr (Ahead)
    Bins::for_each_line(arguments, blockIdx.x + arguments.ahead, Block::bins, thread, Block::threads,
                        [](const Complex* line) { bring_near(line); });
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

template <int H, int W, class Bins, int BlocksAtOnce, bool Ahead = false>
void launch_inverse(Stream& stream, const typename Bins::Arguments& arguments) {
  using Block = InverseBlock<H, W, Bins>;
  launch_early<inverse_kernel<H, W, Bins, BlocksAtOnce, Ahead>>(stream, Bins::blocks(arguments), Block::threads,
                                                                sizeof(typename Block::Shared), arguments);
}

template <int H, int W, BlockShape Shape>
void launch_stored_inverse(Stream& stream, InverseArguments arguments) {
  if constexpr (Shape.prefetch) arguments.ahead = std::int64_t(Shape.min_blocks) * multiprocessors(stream.device());
  launch_inverse<H, W, StoredBins<Shape.planes>, Shape.min_blocks, Shape.prefetch>(stream, arguments);
}

template <int H, int W, BlockShape Shape>
void launch_forward(Stream& stream, const ForwardArguments& arguments) {
  using Block = ForwardBlock<H, W, Shape.planes>;
  launch_early<forward_kernel<H, W, Shape.planes, Shape.min_blocks>>(
      stream, (arguments.tiles.count() + Shape.planes - 1) / Shape.planes, Block::threads,
      sizeof(typename Block::Shared), arguments);
}

template <PlaneShape Shape>
PlaneKernels plane_kernels() {
  constexpr int H = Shape.height, W = Shape.width;
  return {H, W, PlaneSize<H, W>::bins,
          [](Stream& stream, const ForwardArguments& arguments) {
            if (arguments.tiles.count() < many_planes)
              launch_forward<H, W, Shape.forward.few>(stream, arguments);
            else
              launch_forward<H, W, Shape.forward.many>(stream, arguments);
          },
          [](Stream& stream, const InverseArguments& arguments) {
            if (arguments.tiles.count() < many_planes)
              launch_stored_inverse<H, W, Shape.inverse.few>(stream, arguments);
            else
              launch_stored_inverse<H, W, Shape.inverse.many>(stream, arguments);
          }};
}

}  // namespace twiddle::small_fft
