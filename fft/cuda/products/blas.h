#pragma once
#include <cublas_v2.h>

#include <cstddef>
#include <string>

#include "framework/cuda/check.h"
#include "framework/device.h"

namespace twiddle {

std::string blas_version();  // "cuBLAS 13.1.0"

// Memory that a product may work in: as much as cuBLAS asks for on this generation of GPUs.
constexpr std::size_t most_blas_workspace = std::size_t(32) << 20;

// A cuBLAS handle that works in memory of its caller's, for cuBLAS would take some while a graph is recorded.
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
