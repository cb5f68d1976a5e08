#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/device.h"

namespace twiddle {

// Matrix products C = A B of fp32 numbers by a GPU's tensor cores, within the error limit of fp32: each number is
// multiplied as the sum of two fp16 values (high + low). See fft/cuda/pair_products/README.md.

// A matrix in memory. Along one dimension elements are adjacent, in pieces of `period` elements that are `piece_stride`
// apart, such as the planes of a channel in [image][channel][element]. Along the other dimension they are `stride`
// apart.
template <class Number>
struct StridedMatrix {
  Number* values = nullptr;
  std::int64_t stride = 0, period = 0, piece_stride = 0;
};

// [rows][columns] without gaps.
template <class Number>
StridedMatrix<Number> plain_matrix(Number* values, std::int64_t columns) {
  return {values, columns, columns, 0};
}

// C [m][n] = A [m][k] B [k][n]. A is split into fp16 values once, B again for every 128 rows of C unless there are many
// rows (tuned_on_h100.h). A should therefore be the smaller factor.
struct PairProduct {
  std::int64_t m = 0, n = 0, k = 0;  // k below 2^31
  StridedMatrix<const float> a, b;
  bool a_along_k = true, b_along_k = true;  // whether adjacent elements of that factor differ in k
  // Whether A's columns are scaled to similar magnitudes first. This reads A once more and requires columns without
  // gaps. It is needed if magnitudes may differ by many orders along k, as between channels.
  bool balance = true;
  // Adjacent elements of C differ in n, or, if transposed, in m; only a matrix without gaps can be transposed.
  StridedMatrix<float> c;
  bool transpose_c = false;
  bool add = false;                 // C += A B; for a C without gaps
  std::int64_t longest_sum = 8192;  // of consecutively added terms
  const float* bias = nullptr;      // added to each row: m numbers; or to each column: n numbers
  bool bias_of_columns = false;
  bool relu = false;  // applied after the bias
  // Number of products of this shape, and elements between consecutive operands.
  std::int64_t batch = 1, a_step = 0, b_step = 0, c_step = 0;
};

// Returns op(A) op(B) of matrices without gaps. The smaller factor is split beforehand; if that is B, the transposed
// product is computed.
PairProduct pair_product_of(const Gemm& gemm, const float* a, const float* b, float* c);

// The instruction that multiplies fp16 values.
enum class TensorCores : std::uint8_t {
  wgmma,  // one warpgroup, from shared memory: compute capability 9.0
  mma     // one warp, from registers: 8.0 or higher
};
// Returns the supported ones, the fastest first; none below 8.0, on a CPU, or in a build without CUDA.
std::vector<TensorCores> tensor_cores(const Device& device);

std::size_t scratch_of_pair_product(const Device& device, TensorCores cores, const PairProduct& product);  // bytes
void run_pair_product(Stream& stream, TensorCores cores, const PairProduct& product, void* scratch);
void run_pair_product(Stream& stream, TensorCores cores,
                      const PairProduct& product);  // allocates its scratch from the pool

}  // namespace twiddle
