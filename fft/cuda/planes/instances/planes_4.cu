#include "fft/cuda/planes/fbfft_kernel_groups.h"

template void twiddle::small_fft::fill_group_of_planes<4>(std::vector<PlaneKernels>& all);
