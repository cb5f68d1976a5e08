#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/channel_product.h"
#include "fft/cpu/kernels/few_points.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/product.h"
#include "fft/cpu/kernels/vector_avx2.h"
#include "fft/cpu/kernels/winograd.h"

namespace twiddle {

CpuKernels avx2_kernels() {
  return {.lanes = 8,
          .plane_scratch = plane_scratch<8>,
          .forward = forward_planes<8, false>,
          .forward_past_caches = forward_planes<8, true>,
          .inverse = inverse_planes<8>,
          .few_scratch = few_scratch<8>,
          .forward_few = forward_few<8, false>,
          .forward_few_past_caches = forward_few<8, true>,
          .inverse_few = inverse_few<8>,
          .winograd_scratch = winograd_scratch,
          .forward_winograd = forward_winograd<8>,
          .inverse_winograd = inverse_winograd<8>,
          .product_scratch = product_scratch<8>,
          .multiply = multiply<8, 2>,
          .multiply_channels = multiply_channels<8>,
          .sum_channels = sum_channels<8>};
}

}  // namespace twiddle
