#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "layers/conv/cuda/tap_shifts/sm_90a/forward_kernel.h"

namespace twiddle::tap_shifts {

namespace {

template <bool Pairs, bool Masked, int Rows>
void launch(Stream& stream, const ForwardArguments& g, dim3 grid) {
  const int bytes = ForwardPlaces(g.t, g.chunks, g.stages, g.resident, Pairs).all;
  const auto kernel = forward_kernel<Pairs, Masked, Rows>;
  twiddle::detail::allow_all_shared_memory(kernel, stream.device());
  kernel<<<grid, forward_threads, bytes, twiddle::detail::native(stream)>>>(g);
  twiddle::detail::check_launch();
}

template <bool Pairs, bool Masked>
void launch(Stream& stream, const ForwardArguments& g, dim3 grid) {
  g.t.rows == tall_strip ? launch<Pairs, Masked, tall_strip>(stream, g, grid)
                         : launch<Pairs, Masked, short_strip>(stream, g, grid);
}

}  // namespace

void launch_forward(Stream& stream, const ForwardArguments& g, bool pairs, dim3 grid) {
  if (g.mask == nullptr)
    pairs ? launch<true, false>(stream, g, grid) : launch<false, false>(stream, g, grid);
  else
    pairs ? launch<true, true>(stream, g, grid) : launch<false, true>(stream, g, grid);
}

}  // namespace twiddle::tap_shifts
