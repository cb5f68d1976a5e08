#pragma once
#include <string>

#include "framework/device.h"

namespace twiddle {

// C = alpha op(A) op(B) + beta C on the CPU's threads. With beta = 0, C is written and never read.
// oneDNN's sgemm, or gemm_plain.cpp in a build without oneDNN.
void cpu_gemm(const Gemm& shape, const float* a, const float* b, float* c);

std::string cpu_gemm_library();  // "oneDNN 2.6.3": for headers and results

}  // namespace twiddle
