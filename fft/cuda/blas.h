#pragma once
#include <cublas_v2.h>

#include <memory>

#include "framework/cuda/check.h"
#include "framework/device.h"

namespace twiddle {

// A cuBLAS handle with memory of its own from the stream's pool, for cuBLAS would take some while a graph is recorded.
class Blas {
 public:
  explicit Blas(std::size_t workspace_bytes = std::size_t(32) << 20) : workspace_bytes_(workspace_bytes) {}
  cublasHandle_t on(Stream& stream) { return on(stream, static_cast<cudaStream_t>(stream.native())); }
  cublasHandle_t on(Stream& owner, cudaStream_t stream);  // beside the stream that owns the memory

 private:
  std::size_t workspace_bytes_;
  std::shared_ptr<void> workspace_;
  Handle<cublasHandle_t, cublasDestroy> handle_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace twiddle
