#include "fft/cuda/pair_products/sm_90a/few_rows_kernel.h"
#include "framework/cuda/check.h"
#include "framework/quotient_up.h"

namespace twiddle::pairs {

namespace {

template <bool AlongK>
void launch(Stream& stream, const FewRows& arguments) {
  constexpr std::size_t bytes = sizeof(SharedOfFewRows<AlongK>);
  const auto kernel = arguments.m <= 64 ? few_rows_kernel<AlongK, 64> : few_rows_kernel<AlongK, 128>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const auto blocks = static_cast<unsigned>(quotient_up(arguments.all_steps, arguments.part));
  kernel<<<blocks, threads_of_both, bytes, twiddle::detail::native(stream)>>>(arguments);
  twiddle::detail::check_launch();
}

}  // namespace

void multiply_few_rows_by_wgmma(Stream& stream, const FewRows& arguments, bool along_k) {
  along_k ? launch<true>(stream, arguments) : launch<false>(stream, arguments);
}

}  // namespace twiddle::pairs
