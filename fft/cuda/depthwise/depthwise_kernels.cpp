#include "fft/cuda/depthwise/depthwise_kernels.h"

#include <iterator>

#include "fft/cuda/depthwise/tuned_on_h200.h"

namespace twiddle::small_fft {

std::vector<DepthwiseKernels> all_depthwise_kernels() {
  std::vector<DepthwiseKernels> all(std::size(depthwise_shapes));
  fill_group_of_depthwise<0>(all);
  fill_group_of_depthwise<1>(all);
  fill_group_of_depthwise<2>(all);
  fill_group_of_depthwise<3>(all);
  return all;
}

}  // namespace twiddle::small_fft
