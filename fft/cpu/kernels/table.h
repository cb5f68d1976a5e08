#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/channel_product.h"
#include "fft/cpu/kernels/few_points.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/product.h"
#include "fft/cpu/kernels/winograd.h"

namespace twiddle {
namespace {

// The kernels for vectors of `lanes` floats. `most_rows`: rows of a product's tile, limited by the number of registers.
template <int lanes, int most_rows>
CpuKernels kernels_of() {
  return {.lanes = lanes,
          .plane_scratch = plane_scratch<lanes>,
          .forward = forward_planes<lanes, false>,
          .forward_past_caches = forward_planes<lanes, true>,
          .inverse = inverse_planes<lanes>,
          .few_scratch = few_scratch<lanes>,
          .forward_few = forward_few<lanes, false>,
          .forward_few_past_caches = forward_few<lanes, true>,
          .inverse_few = inverse_few<lanes>,
          .winograd_scratch = winograd_scratch,
          .forward_winograd = forward_winograd<lanes>,
          .inverse_winograd = inverse_winograd<lanes>,
          .product_scratch = product_scratch<lanes>,
          .multiply = multiply<lanes, most_rows>,
          .multiply_channels = multiply_channels<lanes>,
          .sum_channels = sum_channels<lanes>};
}

}  // namespace
}  // namespace twiddle
