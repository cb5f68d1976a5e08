#include "framework/cuda/blas_gemm.h"

#include <algorithm>

#include "framework/cuda/check.h"

namespace twiddle {

namespace {

// cuBLAS may sum one by one in float, which loses 1.9e-8 times the root of the number of terms: of longer sums than
// these, parts are added up, each as long as the others and a multiple of what a load takes.
constexpr std::int64_t longest_sum = 9216, longest_tf32_sum = 32768;  // docs/conv.md says what they lose
std::int64_t part_of_sum(std::int64_t terms, std::int64_t longest) {
  constexpr std::int64_t multiple = 32;
  const std::int64_t parts = std::max<std::int64_t>(1, (terms + longest - 1) / longest);
  return std::max<std::int64_t>(1, (terms + parts * multiple - 1) / (parts * multiple)) * multiple;
}

}  // namespace

// cuBLAS is column-major: a row-major C = A B is its C' = B' A'.
void blas_gemm(cublasHandle_t blas, const Gemm& shape, const float* a, const float* b, float* c) {
  // An empty sum brings leading dimensions of 0, which cuBLAS refuses.
  const std::int64_t lda = shape.lda ? shape.lda : std::max<std::int64_t>(1, shape.transpose_a ? shape.m : shape.k);
  const std::int64_t ldb = shape.ldb ? shape.ldb : std::max<std::int64_t>(1, shape.transpose_b ? shape.k : shape.n);
  const std::int64_t ldc = shape.ldc ? shape.ldc : shape.n;
  if (shape.m == 0 || shape.n == 0) return;
  const std::int64_t part = part_of_sum(shape.k, shape.tf32 ? longest_tf32_sum : longest_sum);
  for (std::int64_t first = 0; first == 0 || first < shape.k; first += part) {
    const float beta = first == 0 ? shape.beta : 1;
    const float* const part_of_a = a + (shape.transpose_a ? first * lda : first);
    const float* const part_of_b = b + (shape.transpose_b ? first : first * ldb);
    check(cublasGemmEx_64(blas, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                          shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, shape.n, shape.m,
                          std::min(part, shape.k - first), &shape.alpha, part_of_b, CUDA_R_32F, ldb, part_of_a,
                          CUDA_R_32F, lda, &beta, c, CUDA_R_32F, ldc,
                          shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
}

}  // namespace twiddle
