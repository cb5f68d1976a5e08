#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/device.h"

namespace twiddle {

// Matrix products C = A B of fp32 numbers by a GPU's tensor cores, in the fp32 class: each number is multiplied as the
// sum of two halves (fp16). See fft/cuda/pair_products/README.md.

// A matrix in memory. Along one dimension elements are adjacent, in pieces of `period` elements that lie `piece_stride`
// apart, as the planes of a channel in [image][channel][place]; along the other they are `stride` apart.
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

// C [m][n] = A [m][k] B [k][n]. A is split into halves once; B anew for every 128 rows of C, but where these are many
// (tuned_on_h100.h). So let A be the smaller factor.
struct PairProduct {
  std::int64_t m = 0, n = 0, k = 0;  // k below 2^31
  StridedMatrix<const float> a, b;
  bool a_along_k = true, b_along_k = true;  // whether adjacent elements of that factor differ in k
  // Whether A's columns are brought to the same size first, which takes another look at A, whose columns have no gaps
  // then. Needed where what is summed over may differ by many orders of magnitude, as channels may.
  bool balance = true;
  // Adjacent elements of C differ in n; or in m, where it is transposed, which only a matrix without gaps can be.
  StridedMatrix<float> c;
  bool transpose_c = false;
  bool add = false;                 // C + A B in place of A B, for a C without gaps
  std::int64_t longest_sum = 8192;  // of terms that are added one after the other
  const float* bias = nullptr;      // is added to each row: m numbers; or to each column: n numbers
  bool bias_of_columns = false;
  bool relu = false;  // then leaves nothing below zero
  // So many products of one kind, whose factors and results lie so many elements apart.
  std::int64_t batch = 1, a_step = 0, b_step = 0, c_step = 0;
};

// op(A) op(B) of matrices without gaps. The smaller factor is split beforehand; where that is B, the product is the
// transposed one.
PairProduct pair_product_of(const Gemm& gemm, const float* a, const float* b, float* c);

// What a GPU multiplies halves with.
enum class TensorCores : std::uint8_t {
  wgmma,  // four warps together, from shared memory: compute capability 9.0
  mma     // a warp, from registers: 8.0 and above
};
// The fastest first; none below 8.0, on a CPU, or where there is no such GPU.
std::vector<TensorCores> tensor_cores(const Device& device);

std::size_t scratch_of_pair_product(const Device& device, TensorCores cores, const PairProduct& product);  // bytes
void run_pair_product(Stream& stream, TensorCores cores, const PairProduct& product, void* scratch);
void run_pair_product(Stream& stream, TensorCores cores, const PairProduct& product);  // takes it from the pool

}  // namespace twiddle
