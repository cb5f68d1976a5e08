#pragma once
#include "fft/cuda/batched/batched_launch.h"
#include "fft/cuda/batched/plane_major_fft.h"

namespace twiddle::small_fft {

// P planes a block; as many blocks on a multiprocessor as its registers and shared memory have room for.
template <int H, int W, int P, int BlocksAtOnce>
void add_planes(std::vector<BatchKernels>& all) {
  all.push_back(batch_kernels<NaturalForward<H, W, P>, NaturalInverse<H, W, P>, BlocksAtOnce>(H, W));
}

// At most so many planes, Few a block.
template <int H, int W, int Few>
void add_few_planes(std::vector<BatchKernels>& all, std::int64_t most) {
  all.push_back(batch_kernels<DirectNaturalForward<H, W, Few>, DirectNaturalInverse<H, W, Few>, 1>(H, W, most));
}

}  // namespace twiddle::small_fft
