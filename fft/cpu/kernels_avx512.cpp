#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/channel_product.h"
#include "fft/cpu/kernels/few_points.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/product.h"
#include "fft/cpu/kernels/vector_avx512.h"
#include "fft/cpu/kernels/winograd.h"

namespace twiddle {

CpuKernels avx512_kernels() {
  return {.lanes = 16,
          .plane_scratch = plane_scratch<16>,
          .forward = forward_planes<16, false>,
          .forward_past_caches = forward_planes<16, true>,
          .inverse = inverse_planes<16>,
          .few_scratch = few_scratch<16>,
          .forward_few = forward_few<16, false>,
          .forward_few_past_caches = forward_few<16, true>,
          .inverse_few = inverse_few<16>,
          .winograd_scratch = winograd_scratch,
          .forward_winograd = forward_winograd<16>,
          .inverse_winograd = inverse_winograd<16>,
          .product_scratch = product_scratch<16>,
          .multiply = multiply<16, 6>,
          .multiply_channels = multiply_channels<16>,
          .sum_channels = sum_channels<16>};
}

}  // namespace twiddle
