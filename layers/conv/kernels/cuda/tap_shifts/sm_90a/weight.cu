#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/weight_kernel.h"

namespace twiddle::tap_shifts {

namespace {

template <bool Pairs>
void launch(Stream& stream, const WeightArguments& g, dim3 grid) {
  const int bytes = WeightPlaces(g.t, Pairs).all;
  const auto kernel = weight_kernel<Pairs>;
  twiddle::detail::allow_all_shared_memory(kernel, stream.device());
  kernel<<<grid, weight_threads, bytes, twiddle::detail::native(stream)>>>(g);
  twiddle::detail::check_launch();
}

}  // namespace

void launch_weight(Stream& stream, const WeightArguments& g, bool pairs, dim3 grid) {
  pairs ? launch<true>(stream, g, grid) : launch<false>(stream, g, grid);
}

}  // namespace twiddle::tap_shifts
