#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fft/spectrum_storage.h"
#include "framework/context.h"

namespace twiddle {

// One product C = op(A) op(B) a bin, of complex numbers or, in the storages `real`, of real ones which know no
// conjugates, or C + it: op(A) is m x k, op(B) k x n, C m x n. The stored matrices are spectra: A is k x m where
// transposed, B n x k.
struct FrequencyGemm {
  std::int64_t bins = 0, m = 0, n = 0, k = 0;
  bool transpose_a = false, conjugate_a = false;
  bool transpose_b = false, conjugate_b = false;
  bool accumulate = false;
};

// The most terms that a product in the storages `real` sums before it rounds the sum and begins anew. These products
// are Winograd's, whose F(4x4) multiplies their error by 4.8, so that sums must be short: in one register over a
// thousand channels the error would miss 2e-6 (2.2e-6 by oneDNN).
constexpr std::int64_t longest_real_sum = 128;

// What computes these.
class FrequencyProduct {
 public:
  virtual ~FrequencyProduct() = default;
  virtual std::string_view name() const = 0;        // "strided_batched"
  virtual SpectrumStorage storage() const = 0;      // of all three spectra
  virtual bool keeps_fp32() const { return true; }  // false: its factors are rounded to ten bits after the point
  virtual std::size_t scratch_bytes(const FrequencyGemm& gemm) const = 0;
  virtual void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) = 0;
};

}  // namespace twiddle
