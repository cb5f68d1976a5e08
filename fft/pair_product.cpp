#include "fft/pair_product.h"

namespace twiddle {

PairProduct pair_product_of(const Gemm& gemm, const float* a, const float* b, float* c) {
  struct Side {
    StridedMatrix<const float> matrix;
    bool along_k;
    std::int64_t lines;  // rows of C, or columns
  };
  const Side rows{plain_matrix(a, gemm.transpose_a ? gemm.m : gemm.k), !gemm.transpose_a, gemm.m};
  const Side columns{plain_matrix(b, gemm.transpose_b ? gemm.k : gemm.n), gemm.transpose_b, gemm.n};
  const bool fewer_rows = gemm.m <= gemm.n;
  const Side &first = fewer_rows ? rows : columns, &second = fewer_rows ? columns : rows;
  return {.m = first.lines,
          .n = second.lines,
          .k = gemm.k,
          .a = first.matrix,
          .b = second.matrix,
          .a_along_k = first.along_k,
          .b_along_k = second.along_k,
          .c = plain_matrix(c, gemm.n),
          .transpose_c = !fewer_rows,
          .a_step = first.lines * gemm.k,
          .b_step = second.lines * gemm.k,
          .c_step = gemm.m * gemm.n};
}

}  // namespace twiddle
