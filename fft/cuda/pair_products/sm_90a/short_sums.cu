#include "fft/cuda/pair_products/sm_90a/short_sums_kernel.h"
#include "framework/cuda/check.h"
#include "framework/quotient_up.h"

namespace twiddle::pairs {

void multiply_short_sums_by_wgmma(Stream& stream, const ShortSums& arguments, int steps) {
  constexpr std::size_t bytes = sizeof(SharedOfShortSums);
  const auto kernel = steps == 2 ? short_sums_kernel<2> : short_sums_kernel<4>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const auto blocks = static_cast<unsigned>(quotient_up(arguments.tiles, arguments.part));
  kernel<<<blocks, threads_of_both, bytes, twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

}  // namespace twiddle::pairs
