#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/forward_kernel.h"

namespace twiddle::tap_shifts {

namespace {

template <bool Pairs, int Rows>
void launch(Stream& stream, const ForwardArguments& g, dim3 grid) {
  const int bytes = ForwardPlaces(g.t, g.chunks, g.stages, g.resident, Pairs).all;
  const auto kernel = forward_kernel<Pairs, Rows>;
  twiddle::detail::allow_all_shared_memory(kernel, stream.device());
  kernel<<<grid, forward_threads, bytes, twiddle::detail::native(stream)>>>(g);
  twiddle::detail::check_launch();
}

template <bool Pairs>
void launch(Stream& stream, const ForwardArguments& g, dim3 grid) {
  g.t.rows == tall_strip ? launch<Pairs, tall_strip>(stream, g, grid) : launch<Pairs, short_strip>(stream, g, grid);
}

}  // namespace

void launch_forward(Stream& stream, const ForwardArguments& g, bool pairs, dim3 grid) {
  pairs ? launch<true>(stream, g, grid) : launch<false>(stream, g, grid);
}

}  // namespace twiddle::tap_shifts
