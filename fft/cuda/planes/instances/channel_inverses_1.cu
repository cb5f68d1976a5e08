#include "fft/cuda/planes/channel_inverse_launch.h"

template void twiddle::small_fft::add_channel_inverses<1>(std::vector<ChannelInverseKernel>& all);
