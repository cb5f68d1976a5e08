#pragma once
#include "fft/cuda/batch_kernel_templates.h"
#include "fft/cuda/natural_plane_fft.h"

namespace twiddle::small_fft {

// P planes a block; as many blocks on a multiprocessor as its registers and shared memory have room for.
template <int H, int W, int P, int BlocksAtOnce>
BatchKernels planes() {
  return batch_kernels<NaturalForward<H, W, P>, NaturalInverse<H, W, P>, BlocksAtOnce>(H, W);
}

}  // namespace twiddle::small_fft
