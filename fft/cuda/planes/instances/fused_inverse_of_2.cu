#include "fft/cuda/planes/fused_inverse_launch.h"

template void twiddle::small_fft::add_fused_inverses<2>(std::vector<FusedInverseKernel>& all);
