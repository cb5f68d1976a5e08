#include "fft/cuda/products/blas.h"

#include "framework/error.h"

namespace twiddle {

std::string blas_version() {
  int major = 0, minor = 0, patch = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major));
  check(cublasGetProperty(MINOR_VERSION, &minor));
  check(cublasGetProperty(PATCH_LEVEL, &patch));
  return join("cuBLAS ", major, ".", minor, ".", patch);
}

cublasHandle_t Blas::on(const Stream& stream, void* workspace, std::size_t workspace_bytes) {
  if (!handle_.get()) check(cublasCreate(handle_.put()));
  check(cublasSetStream(handle_.get(), static_cast<cudaStream_t>(stream.native())));  // resets the workspace
  check(cublasSetWorkspace(handle_.get(), workspace, workspace_bytes));
  return handle_.get();
}

}  // namespace twiddle
