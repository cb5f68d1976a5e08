#include "framework/cpu/gemm.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

#include "framework/error.h"

namespace twiddle {

void cpu_gemm(const Gemm& shape, const float* a, const float* b, float* c) {
  const auto& [transpose_a, transpose_b, m, n, k, alpha, beta, stored_lda, stored_ldb, stored_ldc, tf32] = shape;
  if (m == 0 || n == 0) return;
  // oneDNN refuses leading dimensions of 0, which an empty sum brings.
  const std::int64_t lda = stored_lda ? stored_lda : std::max<std::int64_t>(1, transpose_a ? m : k);
  const std::int64_t ldb = stored_ldb ? stored_ldb : std::max<std::int64_t>(1, transpose_b ? k : n);
  const std::int64_t ldc = stored_ldc ? stored_ldc : n;
  if (k == 0) {
    for (std::int64_t row = 0; row < m; ++row)
      std::transform(c + row * ldc, c + row * ldc + n, c + row * ldc,
                     [factor = beta](float old) { return factor == 0 ? 0.0f : factor * old; });
    return;
  }
  const auto status =
      dnnl::sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  require(status == dnnl::status::success, "gemm: oneDNN refused ", m, "x", k, " times ", k, "x", n, " with rows of ",
          lda, ", ", ldb, ", ", ldc, " (status ", static_cast<int>(status), ")");
}

std::string cpu_gemm_library() {
  const dnnl_version_t& version = *dnnl_version();
  return join("oneDNN ", version.major, ".", version.minor, ".", version.patch);
}

}  // namespace twiddle
