#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fft/spectrum_storage.h"
#include "framework/context.h"

namespace twiddle {

// The matrices of the groups in a bin of a stored spectrum: numbers from row to row, and from group to group.
struct GroupedMatrix {
  std::int64_t rows, columns;  // of one group
  std::int64_t pitch, group_step;
};

// One product C = op(A) op(B), or C += op(A) op(B), per bin and group. Its numbers are complex, or real in the storages
// `real`, where conjugation does nothing. op(A) is m x k, op(B) k x n, C m x n. The stored matrices are spectra: A is k
// x m if transposed, B n x k.
// In spectra of x and y, a row holds the columns of all groups, group after group; in those of w the groups' matrices
// follow each other. A is never w. If A is transposed, the pass is backward_weight and C is w; otherwise B is w.
struct FrequencyGemm {
  std::int64_t bins = 0, m = 0, n = 0, k = 0;
  bool transpose_a = false, conjugate_a = false;
  bool transpose_b = false, conjugate_b = false;
  bool accumulate = false;
  std::int64_t groups = 1;

  // Storages in blocks start a new block for each group and have their own row stride.
  GroupedMatrix a() const { return transpose_a ? interleaved(k, m) : interleaved(m, k); }
  GroupedMatrix b() const {
    const std::int64_t rows = transpose_b ? n : k, columns = transpose_b ? k : n;
    return transpose_a ? interleaved(rows, columns) : consecutive(rows, columns);
  }
  GroupedMatrix c() const { return transpose_a ? consecutive(m, n) : interleaved(m, n); }
  // One channel and one filter per group: a product of numbers, or, if A is transposed, a sum of such products.
  bool is_depthwise() const { return groups > 1 && n == 1 && (transpose_a ? m : k) == 1; }

 private:
  GroupedMatrix interleaved(std::int64_t rows, std::int64_t columns) const {
    return {rows, columns, groups * columns, columns};
  }
  static GroupedMatrix consecutive(std::int64_t rows, std::int64_t columns) {
    return {rows, columns, columns, rows * columns};
  }
};

// The most terms that a product in the storages `real` sums before it rounds the sum and starts a new one. Winograd's
// F(4x4) multiplies the error of these products by 4.8, so that sums must be short: one register over a thousand
// channels would exceed 2e-6 (2.2e-6 by oneDNN).
constexpr std::int64_t longest_real_sum = 128;

// Computes a FrequencyGemm.
class FrequencyProduct {
 public:
  virtual ~FrequencyProduct() = default;
  virtual std::string_view name() const = 0;        // "strided_batched"
  virtual SpectrumStorage storage() const = 0;      // of all three spectra
  virtual bool keeps_fp32() const { return true; }  // false: factors are rounded to a 10-bit mantissa
  virtual bool supports(const FrequencyGemm& /*gemm*/) const { return true; }
  virtual std::size_t scratch_bytes(const FrequencyGemm& gemm) const = 0;
  virtual void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) = 0;
};

}  // namespace twiddle
