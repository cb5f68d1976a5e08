#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fft/spectrum_storage.h"
#include "framework/context.h"

namespace twiddle {

// How the matrices of the groups lie in a bin of a stored spectrum: numbers from row to row, and from group to group.
struct GroupedMatrix {
  std::int64_t rows, columns;  // of one group
  std::int64_t pitch, group_step;
};

// One product C = op(A) op(B) a bin and group, of complex numbers or, in the storages `real`, of real ones which know
// no conjugates, or C + it: op(A) is m x k, op(B) k x n, C m x n. The stored matrices are spectra: A is k x m where
// transposed, B n x k.
// In spectra of x and y, a row holds the columns of all groups, one group beside the other; in those of w the groups'
// matrices follow each other. A is never of w; where it is transposed, C is, as the pass is backward_weight, and else
// B.
struct FrequencyGemm {
  std::int64_t bins = 0, m = 0, n = 0, k = 0;
  bool transpose_a = false, conjugate_a = false;
  bool transpose_b = false, conjugate_b = false;
  bool accumulate = false;
  std::int64_t groups = 1;

  // Storages in blocks begin a block with each group, and count their own way from row to row.
  GroupedMatrix a() const { return transpose_a ? beside(k, m) : beside(m, k); }
  GroupedMatrix b() const {
    const std::int64_t rows = transpose_b ? n : k, columns = transpose_b ? k : n;
    return transpose_a ? beside(rows, columns) : behind(rows, columns);
  }
  GroupedMatrix c() const { return transpose_a ? behind(m, n) : beside(m, n); }
  // Of one channel and one filter a group: then it is a product of numbers, or, where A is transposed, a sum of such.
  bool is_depthwise() const { return groups > 1 && n == 1 && (transpose_a ? m : k) == 1; }

 private:
  GroupedMatrix beside(std::int64_t rows, std::int64_t columns) const {
    return {rows, columns, groups * columns, columns};
  }
  static GroupedMatrix behind(std::int64_t rows, std::int64_t columns) {
    return {rows, columns, columns, rows * columns};
  }
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
  virtual bool supports(const FrequencyGemm& /*gemm*/) const { return true; }
  virtual std::size_t scratch_bytes(const FrequencyGemm& gemm) const = 0;
  virtual void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) = 0;
};

}  // namespace twiddle
