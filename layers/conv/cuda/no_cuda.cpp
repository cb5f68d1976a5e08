#include "framework/error.h"
#include "layers/conv/cuda/depthwise.h"

namespace twiddle {

bool depthwise_fits_gpu(const ConvProblem&) {
  return false;
}

void depthwise_on_gpu(Stream&, const ConvProblem&, ConvPass, ConvOperands&) {
  throw Error(ErrorKind::device, "this build has no CUDA");
}

std::size_t depthwise_scratch_on_gpu(const ConvProblem&, ConvPass) {
  return 0;
}

bool depthwise_sums_bias_on_gpu(const ConvProblem&) {
  return false;
}

}  // namespace twiddle
