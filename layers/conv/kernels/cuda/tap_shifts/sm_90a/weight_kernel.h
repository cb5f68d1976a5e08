#pragma once
#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/weight_splitting.h"
#include "layers/conv/kernels/cuda/tap_shifts/sm_90a/weight_summing.h"

// Four warps load and split tiles of x and of y's gradient, eight planes each. Three warpgroups, one per row of
// kernels, multiply them: rows are filters, columns are channels, k are positions.
namespace twiddle::tap_shifts {

template <bool Pairs>
__global__ void __launch_bounds__(weight_threads, 1) weight_kernel(const __grid_constant__ WeightArguments g) {
  extern __shared__ __align__(128) char memory[];
  const WeightPlaces places(g.t, Pairs);
  const WeightShared s(memory, places);
  const int number = static_cast<int>(threadIdx.x);
  if (number < weight_stages)
    s.is_there[number].begin(group_threads), s.is_free[number].begin(summing_groups * group_threads);
  if (number < 2 * block_filters) s.exponents[number] = s.lowest[number] = first_exponent;
  small_fft::show_to_wgmma();
  __syncthreads();
  const int thread = number % group_threads, group = __shfl_sync(0xffffffffu, number / group_threads, 0);
  if (group < summing_groups) {
    set_registers<registers_of_summing(Pairs)>();
    Summing<Pairs>(g, places, s, group, thread).run();
  } else {
    set_registers<registers_of_splitting(Pairs)>();
    const int warp = __shfl_sync(0xffffffffu, thread / lanes, 0), lane = thread % lanes;
    if (g.t.channels % octet == 0 && g.t.filters % octet == 0)
      Splitting<Pairs, true>(g, places, s, warp, lane).run();
    else
      Splitting<Pairs, false>(g, places, s, warp, lane).run();
  }
}

}  // namespace twiddle::tap_shifts
