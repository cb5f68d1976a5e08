// The matrix product of a build without oneDNN: blocks of K packed for a small kernel that keeps its tile of C in
// registers (Goto, van de Geijn: Anatomy of high-performance matrix multiplication, 2008). Every element of C is summed
// in the same order whatever the thread count.
#include <algorithm>
#include <cstddef>
#include <memory>

#include "framework/cpu/gemm.h"

namespace twiddle {

namespace {

constexpr std::int64_t block_k = 256, block_n = 4096;         // of one packed round: B's share stays below 4 MiB
constexpr std::int64_t tile_panels_m = 8, tile_panels_n = 8;  // panels a task multiplies: its B stays in the L2 cache

// tile [rows x 2 * lanes] = sum over k of a [k][rows] times b [k][2 * lanes].
using MicroKernel = void (*)(std::int64_t k, const float* a, const float* b, float* tile);

template <int rows, int lanes>
[[gnu::always_inline]] inline void multiply_panels(std::int64_t k, const float* a, const float* b, float* tile) {
  typedef float Vector __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
  Vector sums[rows][2] = {};
  for (std::int64_t i = 0; i < k; ++i, a += rows, b += 2 * lanes) {
    const Vector left = *reinterpret_cast<const Vector*>(b), right = *reinterpret_cast<const Vector*>(b + lanes);
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row) {
      sums[row][0] += a[row] * left;
      sums[row][1] += a[row] * right;
    }
  }
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) {
    *reinterpret_cast<Vector*>(tile + row * 2 * lanes) = sums[row][0];
    *reinterpret_cast<Vector*>(tile + row * 2 * lanes + lanes) = sums[row][1];
  }
}

struct Kernel {
  MicroKernel run;
  std::int64_t rows, columns;
};

void multiply_baseline(std::int64_t k, const float* a, const float* b, float* tile) {
  multiply_panels<6, 4>(k, a, b, tile);
}

#ifdef __x86_64__
[[gnu::target("avx2,fma")]] void multiply_avx2(std::int64_t k, const float* a, const float* b, float* tile) {
  multiply_panels<6, 8>(k, a, b, tile);
}

[[gnu::target("avx512f")]] void multiply_avx512(std::int64_t k, const float* a, const float* b, float* tile) {
  multiply_panels<12, 16>(k, a, b, tile);
}

Kernel best_kernel() {
  if (__builtin_cpu_supports("avx512f")) return {multiply_avx512, 12, 32};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {multiply_avx2, 6, 16};
  return {multiply_baseline, 6, 8};
}
#else
Kernel best_kernel() {
  return {multiply_baseline, 6, 8};
}
#endif

constexpr std::int64_t largest_tile = 12 * 32;

// Panels of `width` rows of op(A) (columns of op(B)), k-major within a panel, filled up with zeros: element (i, k) of
// the source lies at source[i * step_i + k * step_k].
void pack_panel(const float* source, std::int64_t step_i, std::int64_t step_k, std::int64_t count, std::int64_t depth,
                std::int64_t width, float* packed) {
  const std::int64_t panels = (count + width - 1) / width;
#pragma omp parallel for schedule(static) if (count * depth > 65536)
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t first = panel * width, filled = std::min(width, count - first);
    float* to = packed + panel * width * depth;
    for (std::int64_t k = 0; k < depth; ++k, to += width) {
      const float* from = source + first * step_i + k * step_k;
      for (std::int64_t i = 0; i < filled; ++i) to[i] = from[i * step_i];
      for (std::int64_t i = filled; i < width; ++i) to[i] = 0;
    }
  }
}

// C's tile = alpha tile + beta C; the first round of K brings the caller's beta, the later ones add.
void store(const float* tile, const Kernel& kernel, float alpha, float beta, std::int64_t rows, std::int64_t columns,
           float* c, std::int64_t ldc) {
  for (std::int64_t row = 0; row < rows; ++row, tile += kernel.columns, c += ldc)
    if (beta == 0)
      for (std::int64_t column = 0; column < columns; ++column) c[column] = alpha * tile[column];
    else
      for (std::int64_t column = 0; column < columns; ++column) c[column] = alpha * tile[column] + beta * c[column];
}

}  // namespace

void cpu_gemm(const Gemm& shape, const float* a, const float* b, float* c) {
  const auto& [transpose_a, transpose_b, m, n, k, alpha, beta, stored_lda, stored_ldb, stored_ldc, tf32] = shape;
  if (m == 0 || n == 0) return;
  const std::int64_t lda = stored_lda ? stored_lda : (transpose_a ? m : k);
  const std::int64_t ldb = stored_ldb ? stored_ldb : (transpose_b ? k : n);
  const std::int64_t ldc = stored_ldc ? stored_ldc : n;
  const std::int64_t a_row = transpose_a ? 1 : lda, a_k = transpose_a ? lda : 1;
  const std::int64_t b_column = transpose_b ? ldb : 1, b_k = transpose_b ? 1 : ldb;

  const Kernel kernel = best_kernel();
  const std::int64_t panels_m = (m + kernel.rows - 1) / kernel.rows;
  const std::int64_t widest_n = std::min(block_n, (n + kernel.columns - 1) / kernel.columns * kernel.columns);
  const std::int64_t deepest = std::min(block_k, k);
  const std::unique_ptr<float[]> packed_a(new float[static_cast<std::size_t>(panels_m * kernel.rows * deepest)]);
  const std::unique_ptr<float[]> packed_b(new float[static_cast<std::size_t>(widest_n * deepest)]);

  for (std::int64_t n0 = 0; n0 < n; n0 += block_n) {
    const std::int64_t width = std::min(block_n, n - n0), panels_n = (width + kernel.columns - 1) / kernel.columns;
    // An empty sum takes one round too: C = beta C.
    for (std::int64_t k0 = 0; k0 == 0 || k0 < k; k0 += block_k) {
      const std::int64_t depth = std::min(block_k, k - k0);
      const float round_beta = k0 == 0 ? beta : 1;
      pack_panel(a + k0 * a_k, a_row, a_k, m, depth, kernel.rows, packed_a.get());
      pack_panel(b + n0 * b_column + k0 * b_k, b_column, b_k, width, depth, kernel.columns, packed_b.get());
#pragma omp parallel for collapse(2) schedule(static) if (m * width * depth > 65536)
      for (std::int64_t tile_m = 0; tile_m < panels_m; tile_m += tile_panels_m)
        for (std::int64_t tile_n = 0; tile_n < panels_n; tile_n += tile_panels_n)
          for (std::int64_t i = tile_m; i < std::min(tile_m + tile_panels_m, panels_m); ++i)
            for (std::int64_t j = tile_n; j < std::min(tile_n + tile_panels_n, panels_n); ++j) {
              alignas(64) float tile[largest_tile];
              kernel.run(depth, packed_a.get() + i * kernel.rows * depth, packed_b.get() + j * kernel.columns * depth,
                         tile);
              const std::int64_t row = i * kernel.rows, column = j * kernel.columns;
              // Named through `shape`: clang shares no structured binding with threads.
              store(tile, kernel, shape.alpha, round_beta, std::min(kernel.rows, shape.m - row),
                    std::min(kernel.columns, width - column), c + row * ldc + n0 + column, ldc);
            }
    }
  }
}

std::string cpu_gemm_library() {
  return "no oneDNN";
}

}  // namespace twiddle
