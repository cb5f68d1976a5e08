#pragma once
#include "cuda_runtime.h"

// cuBLAS for the runtime of cuda_runtime.h: a handle serves the GPU that was current when it was created.
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE };
enum { CUBLAS_OP_N, CUBLAS_OP_T, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT };
struct FakeBlas {
  int device;
};
using cublasHandle_t = FakeBlas*;

inline cublasStatus_t accept(bool right) {
  return right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
inline const char* cublasGetStatusString(cublasStatus_t) {
  return "another GPU's";
}
inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new FakeBlas{fake_cuda::current};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return accept(handle->device == stream->device);
}
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t) {
  return accept(handle->device == fake_cuda::blocks.at(workspace));
}
template <class... Arguments>
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, const Arguments&...) {
  return accept(handle->device == fake_cuda::current);
}
