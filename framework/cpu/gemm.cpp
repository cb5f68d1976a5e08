#include "framework/cpu/gemm.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "framework/error.h"

namespace twiddle {

namespace {

// The longest sums computed at once; parts of longer ones are added up. oneDNN splits the sums of a matrix product, but
// adds those of a vector one by one: its error is 1.4e-8 times the root of the length (measured; a tenth of that for
// matrices).
constexpr std::int64_t longest_of_vectors = 4096, longest_of_matrices = 65536;

// C = alpha op(A) op(B) + beta C, with all leading dimensions set.
void multiply(const Gemm& g, const float* a, const float* b, float* c) {
  const auto status = dnnl::sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, g.alpha, a,
                                  g.lda, b, g.ldb, g.beta, c, g.ldc);
  require(status == dnnl::status::success, "gemm: oneDNN refused ", g.m, "x", g.k, " times ", g.k, "x", g.n,
          " with rows of ", g.lda, ", ", g.ldb, ", ", g.ldc, " (status ", static_cast<int>(status), ")");
}

// Splits a longer product. Parts are summed separately: added to C directly, a part would continue C's sum.
void multiply_in_parts(Gemm part, std::int64_t longest, const float* a, const float* b, float* c) {
  const std::int64_t terms = part.k, ldc = part.ldc;
  part.k = longest;
  multiply(part, a, b, c);
  std::vector<float> summand(static_cast<std::size_t>(part.m * part.n));
  part.beta = 0, part.ldc = part.n;
  for (std::int64_t first = longest; first < terms; first += longest) {
    part.k = std::min(longest, terms - first);
    multiply(part, a + (part.transpose_a ? first * part.lda : first), b + (part.transpose_b ? first : first * part.ldb),
             summand.data());
    for (std::int64_t row = 0; row < part.m; ++row)
      for (std::int64_t i = 0; i < part.n; ++i) c[row * ldc + i] += summand[static_cast<std::size_t>(row * part.n + i)];
  }
}

void scale(const Gemm& g, float* c) {
  for (std::int64_t row = 0; row < g.m; ++row)
    std::transform(c + row * g.ldc, c + row * g.ldc + g.n, c + row * g.ldc,
                   [&](float old) { return g.beta == 0 ? 0.0f : g.beta * old; });
}

}  // namespace

void cpu_gemm(const Gemm& shape, const float* a, const float* b, float* c) {
  if (shape.m == 0 || shape.n == 0) return;
  Gemm whole = shape;
  if (!whole.lda) whole.lda = whole.transpose_a ? whole.m : whole.k;
  if (!whole.ldb) whole.ldb = whole.transpose_b ? whole.k : whole.n;
  if (!whole.ldc) whole.ldc = whole.n;
  if (whole.k == 0) return scale(whole, c);
  const std::int64_t longest = whole.m == 1 || whole.n == 1 ? longest_of_vectors : longest_of_matrices;
  if (whole.k <= longest)
    multiply(whole, a, b, c);
  else
    multiply_in_parts(whole, longest, a, b, c);
}

std::string cpu_gemm_library() {
  const dnnl_version_t& version = *dnnl_version();
  return join("oneDNN ", version.major, ".", version.minor, ".", version.patch);
}

}  // namespace twiddle
