// cuBLAS and cuFFT as PyTorch has loaded them. The engines call their functions by name; here are functions of these
// names, which nobody sees outside of this library, and which pass the call on. So the package is linked to neither,
// and goes with the version that is there: their interfaces are the same from CUDA 12 on. Where one is missing, its
// functions say so, and engines that need it are left out.
#include <cublas_v2.h>
#include <cufft.h>
#include <dlfcn.h>

namespace {

struct Library {
  const char* names[2];  // of CUDA 13 and 12
};
constexpr Library cublas{{"libcublas.so.13", "libcublas.so.12"}}, cufft{{"libcufft.so.12", "libcufft.so.11"}};

// What is loaded already comes first: it need not be where the loader looks.
void* open(const Library& library) {
  for (const int loaded : {RTLD_NOLOAD, 0})
    for (const char* const name : library.names)
      if (void* const found = dlopen(name, RTLD_NOW | RTLD_LOCAL | loaded)) return found;
  return nullptr;
}

// The library's function in place of ours of that name; null: it has none.
template <class Function>
Function* find(const Library& library, Function*, const char* name) {
  void* const found = open(library);
  return found != nullptr ? reinterpret_cast<Function*>(dlsym(found, name)) : nullptr;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static const auto function = find(cublas, &cublasCreate_v2, "cublasCreate_v2");
  return function != nullptr ? function(handle) : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  static const auto function = find(cublas, &cublasDestroy_v2, "cublasDestroy_v2");
  return function != nullptr ? function(handle) : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId) {
  static const auto function = find(cublas, &cublasSetStream_v2, "cublasSetStream_v2");
  return function != nullptr ? function(handle, streamId) : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t workspaceSizeInBytes) {
  static const auto function = find(cublas, &cublasSetWorkspace_v2, "cublasSetWorkspace_v2");
  return function != nullptr ? function(handle, workspace, workspaceSizeInBytes) : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  static const auto function = find(cublas, &cublasGetProperty, "cublasGetProperty");
  return function != nullptr ? function(type, value) : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  static const auto function = find(cublas, &cublasGetStatusString, "cublasGetStatusString");
  return function != nullptr ? function(status) : "cuBLAS is missing";
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                               int64_t n, int64_t k, const void* alpha, const void* A, cudaDataType Atype, int64_t lda,
                               const void* B, cudaDataType Btype, int64_t ldb, const void* beta, void* C,
                               cudaDataType Ctype, int64_t ldc, cublasComputeType_t computeType,
                               cublasGemmAlgo_t algo) {
  static const auto function = find(cublas, &cublasGemmEx_64, "cublasGemmEx_64");
  return function != nullptr ? function(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C,
                                        Ctype, ldc, computeType, algo)
                             : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                             int64_t m, int64_t n, int64_t k, const void* alpha, const void* A,
                                             cudaDataType Atype, int64_t lda, long long int strideA, const void* B,
                                             cudaDataType Btype, int64_t ldb, long long int strideB, const void* beta,
                                             void* C, cudaDataType Ctype, int64_t ldc, long long int strideC,
                                             int64_t batchCount, cublasComputeType_t computeType,
                                             cublasGemmAlgo_t algo) {
  static const auto function = find(cublas, &cublasGemmStridedBatchedEx_64, "cublasGemmStridedBatchedEx_64");
  return function != nullptr ? function(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb,
                                        strideB, beta, C, Ctype, ldc, strideC, batchCount, computeType, algo)
                             : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasCgemm_v2_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                                 int64_t n, int64_t k, const cuComplex* alpha, const cuComplex* A, int64_t lda,
                                 const cuComplex* B, int64_t ldb, const cuComplex* beta, cuComplex* C, int64_t ldc) {
  static const auto function = find(cublas, &cublasCgemm_v2_64, "cublasCgemm_v2_64");
  return function != nullptr ? function(handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)
                             : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasCgemmBatched_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                     int64_t m, int64_t n, int64_t k, const cuComplex* alpha,
                                     const cuComplex* const Aarray[], int64_t lda, const cuComplex* const Barray[],
                                     int64_t ldb, const cuComplex* beta, cuComplex* const Carray[], int64_t ldc,
                                     int64_t batchCount) {
  static const auto function = find(cublas, &cublasCgemmBatched_64, "cublasCgemmBatched_64");
  return function != nullptr
             ? function(handle, transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount)
             : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasCgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                            int64_t m, int64_t n, int64_t k, const cuComplex* alpha, const cuComplex* A,
                                            int64_t lda, long long int strideA, const cuComplex* B, int64_t ldb,
                                            long long int strideB, const cuComplex* beta, cuComplex* C, int64_t ldc,
                                            long long int strideC, int64_t batchCount) {
  static const auto function = find(cublas, &cublasCgemmStridedBatched_64, "cublasCgemmStridedBatched_64");
  return function != nullptr ? function(handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta,
                                        C, ldc, strideC, batchCount)
                             : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasCgemm3mStridedBatched_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                              int64_t m, int64_t n, int64_t k, const cuComplex* alpha,
                                              const cuComplex* A, int64_t lda, long long int strideA,
                                              const cuComplex* B, int64_t ldb, long long int strideB,
                                              const cuComplex* beta, cuComplex* C, int64_t ldc, long long int strideC,
                                              int64_t batchCount) {
  static const auto function = find(cublas, &cublasCgemm3mStridedBatched_64, "cublasCgemm3mStridedBatched_64");
  return function != nullptr ? function(handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta,
                                        C, ldc, strideC, batchCount)
                             : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasCgeam_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                              int64_t n, const cuComplex* alpha, const cuComplex* A, int64_t lda, const cuComplex* beta,
                              const cuComplex* B, int64_t ldb, cuComplex* C, int64_t ldc) {
  static const auto function = find(cublas, &cublasCgeam_64, "cublasCgeam_64");
  return function != nullptr ? function(handle, transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc)
                             : CUBLAS_STATUS_NOT_INITIALIZED;
}

cufftResult cufftCreate(cufftHandle* handle) {
  static const auto function = find(cufft, &cufftCreate, "cufftCreate");
  return function != nullptr ? function(handle) : CUFFT_SETUP_FAILED;
}

cufftResult cufftDestroy(cufftHandle plan) {
  static const auto function = find(cufft, &cufftDestroy, "cufftDestroy");
  return function != nullptr ? function(plan) : CUFFT_SETUP_FAILED;
}

cufftResult cufftGetVersion(int* version) {
  static const auto function = find(cufft, &cufftGetVersion, "cufftGetVersion");
  return function != nullptr ? function(version) : CUFFT_SETUP_FAILED;
}

cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long int* n, long long int* inembed,
                               long long int istride, long long int idist, long long int* onembed,
                               long long int ostride, long long int odist, cufftType type, long long int batch,
                               size_t* workSize) {
  static const auto function = find(cufft, &cufftGetSizeMany64, "cufftGetSizeMany64");
  return function != nullptr
             ? function(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, workSize)
             : CUFFT_SETUP_FAILED;
}

cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long int* n, long long int* inembed,
                                long long int istride, long long int idist, long long int* onembed,
                                long long int ostride, long long int odist, cufftType type, long long int batch,
                                size_t* workSize) {
  static const auto function = find(cufft, &cufftMakePlanMany64, "cufftMakePlanMany64");
  return function != nullptr
             ? function(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, workSize)
             : CUFFT_SETUP_FAILED;
}

cufftResult cufftSetAutoAllocation(cufftHandle plan, int autoAllocate) {
  static const auto function = find(cufft, &cufftSetAutoAllocation, "cufftSetAutoAllocation");
  return function != nullptr ? function(plan, autoAllocate) : CUFFT_SETUP_FAILED;
}

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
  static const auto function = find(cufft, &cufftSetStream, "cufftSetStream");
  return function != nullptr ? function(plan, stream) : CUFFT_SETUP_FAILED;
}

cufftResult cufftSetWorkArea(cufftHandle plan, void* workArea) {
  static const auto function = find(cufft, &cufftSetWorkArea, "cufftSetWorkArea");
  return function != nullptr ? function(plan, workArea) : CUFFT_SETUP_FAILED;
}

cufftResult cufftExecR2C(cufftHandle plan, cufftReal* idata, cufftComplex* odata) {
  static const auto function = find(cufft, &cufftExecR2C, "cufftExecR2C");
  return function != nullptr ? function(plan, idata, odata) : CUFFT_SETUP_FAILED;
}

cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* idata, cufftReal* odata) {
  static const auto function = find(cufft, &cufftExecC2R, "cufftExecC2R");
  return function != nullptr ? function(plan, idata, odata) : CUFFT_SETUP_FAILED;
}

}  // extern "C"
