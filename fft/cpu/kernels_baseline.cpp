#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/channel_product.h"
#include "fft/cpu/kernels/few_points.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/product.h"
#include "fft/cpu/kernels/winograd.h"

namespace twiddle {

CpuKernels baseline_kernels() {
  return {.lanes = 4,
          .plane_scratch = plane_scratch<4>,
          .forward = forward_planes<4, false>,
          .forward_past_caches = forward_planes<4, true>,
          .inverse = inverse_planes<4>,
          .few_scratch = few_scratch<4>,
          .forward_few = forward_few<4, false>,
          .forward_few_past_caches = forward_few<4, true>,
          .inverse_few = inverse_few<4>,
          .winograd_scratch = winograd_scratch,
          .forward_winograd = forward_winograd<4>,
          .inverse_winograd = inverse_winograd<4>,
          .product_scratch = product_scratch<4>,
          .multiply = multiply<4, 2>,
          .multiply_channels = multiply_channels<4>,
          .sum_channels = sum_channels<4>};
}

}  // namespace twiddle
