// Forwards cuBLAS and cuFFT calls to the libraries that PyTorch has loaded. The engines call functions of these names,
// which are defined here and hidden in this library. So the package links to neither library and works with the
// installed version: the used interfaces are the same since CUDA 12. If a library is missing, its functions return an
// error, and engines that need it are skipped.
#include <cublas_v2.h>
#include <cufft.h>
#include <dlfcn.h>

namespace {

template <class Status>
struct Library {
  const char* names[2];  // of CUDA 13 and 12
  Status missing;        // return value if the library or its function is missing
};
constexpr Library<cublasStatus_t> cublas{{"libcublas.so.13", "libcublas.so.12"}, CUBLAS_STATUS_NOT_INITIALIZED};
constexpr Library<cufftResult> cufft{{"libcufft.so.12", "libcufft.so.11"}, CUFFT_SETUP_FAILED};

// Returns the library's function of that name, or null. Searches loaded libraries first, because they may be outside
// the loader's search path.
template <auto ours, class Status>
decltype(ours) find(const Library<Status>& library, const char* name) {
  for (const int loaded : {RTLD_NOLOAD, 0})
    for (const char* const file : library.names)
      if (void* const found = dlopen(file, RTLD_NOW | RTLD_LOCAL | loaded))
        return reinterpret_cast<decltype(ours)>(dlsym(found, name));
  return nullptr;
}

template <auto ours, class Status, class... Arguments>
Status call(const Library<Status>& library, const char* name, Arguments... arguments) {
  static const auto function = find<ours>(library, name);
  return function != nullptr ? function(arguments...) : library.missing;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  return call<&cublasCreate_v2>(cublas, "cublasCreate_v2", handle);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return call<&cublasDestroy_v2>(cublas, "cublasDestroy_v2", handle);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId) {
  return call<&cublasSetStream_v2>(cublas, "cublasSetStream_v2", handle, streamId);
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t workspaceSizeInBytes) {
  return call<&cublasSetWorkspace_v2>(cublas, "cublasSetWorkspace_v2", handle, workspace, workspaceSizeInBytes);
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return call<&cublasGetProperty>(cublas, "cublasGetProperty", type, value);
}

const char* cublasGetStatusString(cublasStatus_t status) {
  static const auto function = find<&cublasGetStatusString>(cublas, "cublasGetStatusString");
  return function != nullptr ? function(status) : "cuBLAS is missing";
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                               int64_t n, int64_t k, const void* alpha, const void* A, cudaDataType Atype, int64_t lda,
                               const void* B, cudaDataType Btype, int64_t ldb, const void* beta, void* C,
                               cudaDataType Ctype, int64_t ldc, cublasComputeType_t computeType,
                               cublasGemmAlgo_t algo) {
  return call<&cublasGemmEx_64>(cublas, "cublasGemmEx_64", handle, transa, transb, m, n, k, alpha, A, Atype, lda, B,
                                Btype, ldb, beta, C, Ctype, ldc, computeType, algo);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                             int64_t m, int64_t n, int64_t k, const void* alpha, const void* A,
                                             cudaDataType Atype, int64_t lda, long long int strideA, const void* B,
                                             cudaDataType Btype, int64_t ldb, long long int strideB, const void* beta,
                                             void* C, cudaDataType Ctype, int64_t ldc, long long int strideC,
                                             int64_t batchCount, cublasComputeType_t computeType,
                                             cublasGemmAlgo_t algo) {
  return call<&cublasGemmStridedBatchedEx_64>(cublas, "cublasGemmStridedBatchedEx_64", handle, transa, transb, m, n, k,
                                              alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype,
                                              ldc, strideC, batchCount, computeType, algo);
}

cublasStatus_t cublasCgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                            int64_t m, int64_t n, int64_t k, const cuComplex* alpha, const cuComplex* A,
                                            int64_t lda, long long int strideA, const cuComplex* B, int64_t ldb,
                                            long long int strideB, const cuComplex* beta, cuComplex* C, int64_t ldc,
                                            long long int strideC, int64_t batchCount) {
  return call<&cublasCgemmStridedBatched_64>(cublas, "cublasCgemmStridedBatched_64", handle, transa, transb, m, n, k,
                                             alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC,
                                             batchCount);
}

cublasStatus_t cublasCgemm3mStridedBatched_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                              int64_t m, int64_t n, int64_t k, const cuComplex* alpha,
                                              const cuComplex* A, int64_t lda, long long int strideA,
                                              const cuComplex* B, int64_t ldb, long long int strideB,
                                              const cuComplex* beta, cuComplex* C, int64_t ldc, long long int strideC,
                                              int64_t batchCount) {
  return call<&cublasCgemm3mStridedBatched_64>(cublas, "cublasCgemm3mStridedBatched_64", handle, transa, transb, m, n,
                                               k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC,
                                               batchCount);
}

cufftResult cufftCreate(cufftHandle* handle) {
  return call<&cufftCreate>(cufft, "cufftCreate", handle);
}

cufftResult cufftDestroy(cufftHandle plan) {
  return call<&cufftDestroy>(cufft, "cufftDestroy", plan);
}

cufftResult cufftGetVersion(int* version) {
  return call<&cufftGetVersion>(cufft, "cufftGetVersion", version);
}

cufftResult cufftGetSizeMany64(cufftHandle plan, int rank, long long int* n, long long int* inembed,
                               long long int istride, long long int idist, long long int* onembed,
                               long long int ostride, long long int odist, cufftType type, long long int batch,
                               size_t* workSize) {
  return call<&cufftGetSizeMany64>(cufft, "cufftGetSizeMany64", plan, rank, n, inembed, istride, idist, onembed,
                                   ostride, odist, type, batch, workSize);
}

cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long int* n, long long int* inembed,
                                long long int istride, long long int idist, long long int* onembed,
                                long long int ostride, long long int odist, cufftType type, long long int batch,
                                size_t* workSize) {
  return call<&cufftMakePlanMany64>(cufft, "cufftMakePlanMany64", plan, rank, n, inembed, istride, idist, onembed,
                                    ostride, odist, type, batch, workSize);
}

cufftResult cufftSetAutoAllocation(cufftHandle plan, int autoAllocate) {
  return call<&cufftSetAutoAllocation>(cufft, "cufftSetAutoAllocation", plan, autoAllocate);
}

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
  return call<&cufftSetStream>(cufft, "cufftSetStream", plan, stream);
}

cufftResult cufftSetWorkArea(cufftHandle plan, void* workArea) {
  return call<&cufftSetWorkArea>(cufft, "cufftSetWorkArea", plan, workArea);
}

cufftResult cufftExecR2C(cufftHandle plan, cufftReal* idata, cufftComplex* odata) {
  return call<&cufftExecR2C>(cufft, "cufftExecR2C", plan, idata, odata);
}

cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* idata, cufftReal* odata) {
  return call<&cufftExecC2R>(cufft, "cufftExecC2R", plan, idata, odata);
}

}  // extern "C"
