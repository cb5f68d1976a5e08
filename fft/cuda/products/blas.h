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
  // For calls on that stream; without a workspace for those that need none.
  cublasHandle_t on(cudaStream_t stream, void* workspace, std::size_t workspace_bytes);
  cublasHandle_t on(const Stream& stream, void* workspace = nullptr, std::size_t workspace_bytes = 0) {
    return on(static_cast<cudaStream_t>(stream.native()), workspace, workspace_bytes);
  }

 private:
  Handle<cublasHandle_t, cublasDestroy> handle_;
};

}  // namespace twiddle
