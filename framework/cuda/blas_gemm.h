#pragma once
#include <cublas_v2.h>

#include "framework/device.h"

namespace twiddle {

// Stream::gemm by a handle of the thread's current GPU, on the handle's stream.
void blas_gemm(cublasHandle_t blas, const Gemm& shape, const float* a, const float* b, float* c);

}  // namespace twiddle
