#include "apps/bench/cuda/plane_major_groups.h"

template void twiddle::small_fft::add_group_of_plane_major<2>(std::vector<BatchKernels>& all);
