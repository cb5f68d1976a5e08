#pragma once
#include <cublas_v2.h>

#include <cstddef>
#include <string>

#include "framework/cuda/check.h"
#include "framework/device.h"

namespace twiddle {

std::string blas_version();  // "cuBLAS 13.1.0"

// The largest workspace for a product: what cuBLAS recommends for Hopper.
constexpr std::size_t most_blas_workspace = std::size_t(32) << 20;

// A cuBLAS handle whose workspace is its caller's: cuBLAS would allocate one itself, which a CUDA graph cannot capture.
class Blas {
 public:
  cublasHandle_t on(const Stream& stream, void* workspace, std::size_t workspace_bytes);  // for calls on that stream

 private:
  Handle<cublasHandle_t, cublasDestroy> handle_;
};

}  // namespace twiddle
