#include "fft/cuda/depthwise/depthwise_launch.h"

template void twiddle::small_fft::fill_group_of_depthwise<3>(std::vector<DepthwiseKernels>& all);
