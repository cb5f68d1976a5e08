#pragma once
#include <cstdint>

#include "fft/cpu/kernels.h"

namespace twiddle {

// The inner loops of a depthwise convolution on padded planes, where a kernel's tap is an offset. Plain values, as they
// are compiled for processors that may not be the one at hand (see fft/cpu/kernels.h).

// Loops go on to the end of a block: what they read has so many floats more behind it, and so has what they write.
constexpr int depthwise_slack = 128;

// out[i] = sum over taps of weights[tap] * in[i + offsets[tap]], for i below count.
struct TapSums {
  const float *in, *weights;
  const std::int64_t* offsets;
  int taps;
  std::int64_t count;
  float* out;
};

// sums[tap] += sum over i below count of gradient[i] * in[i + offsets[tap]]. Zeros follow the gradient.
struct TapProducts {
  const float *in, *gradient;
  const std::int64_t* offsets;
  int taps;
  std::int64_t count;
  double* sums;
};

struct DepthwiseKernels {
  void (*sum_taps)(const TapSums& sums);
  void (*multiply_taps)(const TapProducts& products);
};
DepthwiseKernels depthwise_kernels_for(InstructionSet set);

DepthwiseKernels baseline_depthwise_kernels();
DepthwiseKernels avx2_depthwise_kernels();
DepthwiseKernels avx512_depthwise_kernels();

}  // namespace twiddle
