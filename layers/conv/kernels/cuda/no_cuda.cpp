#include "framework/error.h"
#include "layers/conv/kernels/cuda/depthwise.h"
#include "layers/conv/kernels/cuda/implicit_gemm/implicit_gemm.h"
#include "layers/conv/kernels/cuda/tap_shifts/tap_shifts.h"

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

bool implicit_gemm_fits(const Device&, const ConvProblem&, ConvPass) {
  return false;
}

void run_implicit_gemm(Stream&, TensorCores, const ConvProblem&, ConvPass, ConvOperands&) {
  throw Error(ErrorKind::device, "this build has no CUDA");
}

std::size_t implicit_gemm_scratch(const Device&, const ConvProblem&, ConvPass) {
  return 0;
}

bool tap_shifts_fit(const ConvProblem&, ConvPass) {
  return false;
}

void run_tap_shifts(Stream&, const ConvProblem&, ConvPass, ConvOperands&) {
  throw Error(ErrorKind::device, "this build has no CUDA");
}

std::size_t tap_shifts_scratch(const Device&, const ConvProblem&, ConvPass) {
  return 0;
}

}  // namespace twiddle
