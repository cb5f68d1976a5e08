#pragma once
#include "fft/cuda/device/bulk_store.h"
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/resident_blocks.h"
#include "fft/cuda/planes/fbfft_kernels.h"
#include "fft/cuda/planes/half_bins.h"
#include "fft/cuda/planes/tuned_on_h200.h"

namespace twiddle::small_fft {

// The phases of plane_fft.h, with the barrier between them. Exponents of fp16 values come from the kernel before this
// one. It waits for the end of all earlier kernels before this one can start (stored_pairs/sm_90a/line_exponents.cu).
// So the first blocks may load planes and mask, which earlier kernels wrote, while it runs. As the wait would, the
// fence makes them ignore what this multiprocessor's cache may still hold of the planes' memory.
template <int H, int W, int P, int MinBlocks>
__global__ void __launch_bounds__((PlaneBlock<H, W, P>::threads),
                                  (resident_blocks<PlaneBlock<H, W, P>::threads>(MinBlocks)))
    forward_kernel(const ForwardArguments arguments, bool dependents_early) {
  using Block = ForwardBlock<H, W, P, StoreFloatsOrHalves>;
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  const bool loads_early = blockIdx.x < arguments.early_blocks;
  const auto wait = [dependents_early] {
    grid_dependency_wait();
    if (dependents_early) launch_dependents();
  };
  if (loads_early)
    __threadfence();
  else
    wait();
  Block::columns(arguments, blockIdx.x, thread, shared);
  __syncthreads();
  if (loads_early) wait();
  Block::rows(arguments, blockIdx.x, thread, shared);
}

// Loads a cache line into L2 without a wait.
__device__ inline void prefetch_l2(const void* line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

// The phases of plane_inverse.h.
template <int H, int W, class Source, int MinBlocks, bool Prefetch>
__global__ void __launch_bounds__((InverseBlock<H, W, Source>::threads),
                                  (resident_blocks<InverseBlock<H, W, Source>::threads>(MinBlocks)))
    inverse_kernel(const typename Source::Arguments arguments, bool dependents_early) {
  using Block = InverseBlock<H, W, Source>;
  extern __shared__ ComplexPair memory[];
  auto& shared = *reinterpret_cast<typename Block::Shared*>(memory);
  const auto thread = static_cast<int>(threadIdx.x);
  grid_dependency_wait();
  if (dependents_early) launch_dependents();
  Block::rows(arguments, blockIdx.x, thread, shared);
  if constexpr (Prefetch)
    Source::for_each_line(arguments, blockIdx.x + arguments.prefetch_distance, Block::bins, thread, Block::threads,
                          [](const Complex* line) { prefetch_l2(line); });
  __syncthreads();
  Complex v[H];
  Block::columns(arguments, blockIdx.x, thread, shared, v);
  if (!arguments.gather) {
    Block::store_columns(arguments, blockIdx.x, thread, shared, v);
    return;
  }
  __syncthreads();  // all columns are in registers: their shared memory is free for the finished planes
  Block::gather(arguments, blockIdx.x, thread, shared, v);
  float* const target = arguments.target + shared.places[0].plane;
  if (!bulk_store(target, shared.stage, Block::gathered(arguments, blockIdx.x)))
    Block::store_gathered(arguments, blockIdx.x, thread, shared);
}

template <int H, int W, class Source, int MinBlocks, bool Prefetch = false>
void launch_inverse(Stream& stream, const typename Source::Arguments& arguments) {
  using Block = InverseBlock<H, W, Source>;
  launch_dependent<inverse_kernel<H, W, Source, MinBlocks, Prefetch>>(stream, Source::blocks(arguments), Block::threads,
                                                                      sizeof(typename Block::Shared), arguments);
}

// For sources whose blocks are consecutive planes.
template <int H, int W, class Source, BlockShape Shape>
void launch_stored_inverse(Stream& stream, typename Source::Arguments arguments) {
  // The block that takes this one's place comes as many later as are resident on the whole GPU.
  if constexpr (Shape.prefetch)
    arguments.prefetch_distance = std::int64_t(Shape.min_blocks) * multiprocessors(stream.device());
  launch_inverse<H, W, Source, Shape.min_blocks, Shape.prefetch>(stream, arguments);
}

template <int H, int W, BlockShape Shape>
void launch_forward(Stream& stream, ForwardArguments arguments) {
  using Block = ForwardBlock<H, W, Shape.planes, StoreFloatsOrHalves>;
  // At least this number is resident at once. The exponents are ready long before later blocks start.
  if (arguments.halves_a_float > 0)
    arguments.early_blocks = static_cast<unsigned>(Shape.min_blocks * multiprocessors(stream.device()));
  launch_dependent<forward_kernel<H, W, Shape.planes, Shape.min_blocks>>(
      stream, (arguments.tiles.count() + Shape.planes - 1) / Shape.planes, Block::threads,
      sizeof(typename Block::Shared), arguments);
}

template <PlaneShape Shape>
PlaneKernels plane_kernels() {
  constexpr int H = Shape.height, W = Shape.width;
  return {
      H,
      W,
      PlaneSize<H, W>::bins,
      Shape.forward.many.planes >= least_planes_of_halves,
      [](Stream& stream, const ForwardArguments& arguments) {
        const bool halves = arguments.halves_a_float > 0;
        if (arguments.tiles.count() < many_planes && (!halves || Shape.forward.few.planes >= least_planes_of_halves))
          launch_forward<H, W, Shape.forward.few>(stream, arguments);
        else
          launch_forward<H, W, Shape.forward.many>(stream, arguments);
      },
      [](Stream& stream, const InverseArguments& arguments) {
        if (arguments.tiles.count() < many_planes)
          launch_stored_inverse<H, W, StoredSource<Shape.inverse.few.planes>, Shape.inverse.few>(stream, arguments);
        else
          launch_stored_inverse<H, W, StoredSource<Shape.inverse.many.planes>, Shape.inverse.many>(stream, arguments);
      }};
}

}  // namespace twiddle::small_fft
