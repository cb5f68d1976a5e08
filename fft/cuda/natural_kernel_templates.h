#pragma once
#include "fft/cuda/batch_kernel_templates.h"
#include "fft/cuda/natural_plane_fft.h"

namespace twiddle::small_fft {

// P planes a block, and Few of them where there are not many; as many blocks on a multiprocessor as its registers and
// shared memory have room for.
template <int H, int W, int Few, int P, int BlocksAtOnce>
void add_planes(std::vector<BatchKernels>& all) {
  all.push_back(few_kernels<DirectNaturalForward<H, W, Few>, DirectNaturalInverse<H, W, Few>>(H, W));
  all.push_back(batch_kernels<NaturalForward<H, W, P>, NaturalInverse<H, W, P>, BlocksAtOnce>(H, W));
}

}  // namespace twiddle::small_fft
