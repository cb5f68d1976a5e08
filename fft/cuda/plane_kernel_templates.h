#pragma once
#include "fft/cuda/plane_kernels.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle::small_fft {

template <int H, int W, int P, int BlocksAtOnce>
__global__ void __launch_bounds__((PlaneBlock<H, W, P>::threads), BlocksAtOnce)
    forward_kernel(const ForwardArguments arguments) {
  using Block = ForwardBlock<H, W, P>;
  extern __shared__ ComplexPair shared[];
  auto* const numbers = reinterpret_cast<Complex*>(shared);
  const auto thread = static_cast<int>(threadIdx.x);
  Block::columns(arguments, blockIdx.x, thread, numbers);
  __syncthreads();
  Block::rows(arguments, blockIdx.x, thread, numbers);
}

template <int H, int W, int P, int BlocksAtOnce>
__global__ void __launch_bounds__((PlaneBlock<H, W, P>::threads), BlocksAtOnce)
    inverse_kernel(const InverseArguments arguments) {
  using Block = InverseBlock<H, W, P>;
  extern __shared__ ComplexPair shared[];
  auto* const numbers = reinterpret_cast<Complex*>(shared);
  const auto thread = static_cast<int>(threadIdx.x);
  Block::rows(arguments, blockIdx.x, thread, numbers);
  __syncthreads();
  Complex v[H];
  Block::columns(arguments, blockIdx.x, thread, numbers, v);
  if (arguments.even_rows) {
    Block::store_even(arguments, blockIdx.x, thread, v);
    return;
  }
  __syncthreads();  // all have read their columns, and what is gathered goes to where these were
  auto& stage = *reinterpret_cast<typename Block::Stage*>(shared);
  Block::gather(arguments, blockIdx.x, thread, v, stage);
  __syncthreads();
  Block::store_gathered(arguments, blockIdx.x, thread, stage);
}

template <int Planes, int Threads, int SharedBytes, class Arguments>
void launch(Stream& stream, void (*kernel)(Arguments), const Arguments& arguments) {
  constexpr int granted = 48 << 10;  // without asking
  if constexpr (SharedBytes > granted)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SharedBytes));
  const std::int64_t blocks = (arguments.tiles.count() + Planes - 1) / Planes;
  require(blocks < std::int64_t(1) << 31, arguments.tiles.count(), " planes are more than one launch can take");
  if (blocks == 0) return;
  kernel<<<static_cast<unsigned>(blocks), Threads, SharedBytes, twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

// P planes a block; as many blocks on a multiprocessor as its registers and shared memory have room for.
template <int H, int W, int P, int BlocksAtOnce>
PlaneKernels plane_kernels() {
  return {H, W, PlaneSize<H, W>::bins,
          [](Stream& stream, const ForwardArguments& arguments) {
            constexpr int bytes = ForwardBlock<H, W, P>::shared_numbers * sizeof(Complex);
            launch<P, ForwardBlock<H, W, P>::threads, bytes>(stream, forward_kernel<H, W, P, BlocksAtOnce>, arguments);
          },
          [](Stream& stream, const InverseArguments& arguments) {
            constexpr int bytes = sizeof(typename InverseBlock<H, W, P>::Stage);
            launch<P, InverseBlock<H, W, P>::threads, bytes>(stream, inverse_kernel<H, W, P, BlocksAtOnce>, arguments);
          }};
}

}  // namespace twiddle::small_fft
