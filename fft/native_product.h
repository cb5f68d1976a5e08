#pragma once
#include <cstddef>
#include <cstdint>

#include "framework/device.h"
#include "framework/dtype.h"

namespace twiddle {

// C = A B of matrices in bf16 or f16, with sums in f32 and each result rounded once. All on the stream's GPU.
struct NativeProduct {
  DType type = DType::bf16;                 // of A and B
  std::int64_t m = 0, n = 0, k = 0;         // C is m x n, in rows
  bool a_along_k = true, b_along_k = true;  // A is [m][k], or else [k][m]; B is [n][k], or else [k][n]
  std::int64_t matrices = 1;
  bool one_a = false, one_b = false;  // the same for all matrices
  bool sums_matrices = false;         // C is one matrix, the sum of all products
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  DType type_of_c = DType::bf16;  // type, or f32
  const float* bias = nullptr;    // [m] if bias_of_rows, else [n]; null: none
  bool bias_of_rows = false, relu = false;
};

// By wgmma: compute capability 9.0, and rows of A and B of a multiple of 16 bytes.
bool can_multiply_native(const Device& device, const NativeProduct& product);
std::size_t scratch_bytes(const Device& device, const NativeProduct& product);
void multiply_native(Stream& stream, const NativeProduct& product, void* scratch);

}  // namespace twiddle
