#include "fft/cpu/cpu_backend.h"

#include <omp.h>

#include <algorithm>

namespace twiddle {

SpectralBackend cpu_fft(InstructionSet set) {
  SpectralBackend backend;
  backend.engine = "fft";
  backend.transforms.push_back(std::make_unique<CpuTransform>(set));
  backend.products.push_back(std::make_unique<CpuProduct>(set));
  backend.fused = std::make_unique<CpuChannelInverse>(set);
  return backend;
}

SpectralBackend cpu_fft() {
  return cpu_fft(best_instruction_set());
}

bool past_caches(std::size_t bytes) {
  return bytes > std::size_t(2) << 20;
}

SpectrumLayout layout_of(std::int64_t rows, std::int64_t columns, int lanes, std::int64_t groups) {
  const std::int64_t group_columns = columns / groups, group_blocks = (group_columns + lanes - 1) / lanes;
  const std::int64_t blocks = groups * group_blocks;
  return {lanes, group_columns, group_blocks, blocks, ((rows * blocks) | 1) * 2 * lanes};
}

SpectrumLayout layout_of(const Planes& planes, int lanes) {
  return layout_of(planes.matrix_rows(), planes.columns, lanes, planes.groups);
}

int SpectrumLayout::columns_in(std::int64_t block) const {
  return static_cast<int>(std::min<std::int64_t>(lanes, group_columns - block % group_blocks * lanes));
}

void CpuChannelInverse::run(Context& /*ctx*/, const FrequencyGemm& gemm, const void* a, const void* b,
                            const Planes& planes, float* target, const PlaneEpilogue& epilogue, void* scratch) {
  transform_.inverse_of_products(planes, static_cast<const float*>(a), static_cast<const float*>(b), gemm.conjugate_b,
                                 target, epilogue, scratch);
}

std::size_t CpuProduct::scratch_bytes(const FrequencyGemm& gemm) const {
  if (gemm.is_depthwise()) return 0;
  return static_cast<std::size_t>(omp_get_max_threads() * kernels_.product_scratch()) * sizeof(float);
}

void CpuProduct::run(Context& /*ctx*/, const FrequencyGemm& gemm, const void* a, const void* b, void* c,
                     void* scratch) {
  const auto *const a_floats = static_cast<const float*>(a), *const b_floats = static_cast<const float*>(b);
  if (gemm.is_depthwise())
    multiply_channels(gemm, a_floats, b_floats, static_cast<float*>(c));
  else
    multiply_matrices(gemm, a_floats, b_floats, static_cast<float*>(c), static_cast<float*>(scratch));
}

namespace {

// Calls `run(first bin, bins)` for chunks of all bins, each on one thread, which prefetches the next bin's factors.
template <class Run>
void for_bins(std::int64_t bins, const Run& run) {
  const std::int64_t together = std::clamp<std::int64_t>(bins / (8 * omp_get_max_threads()), 1, 32);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t bin = 0; bin < bins; bin += together) run(bin, std::min(together, bins - bin));
}

// Groups are adjacent columns, separate blocks of columns, or separate matrices.
BinMatrices matrices_of(const GroupedMatrix& matrix, std::int64_t groups, int lanes) {
  const bool interleaved = matrix.group_step < matrix.pitch;
  const SpectrumLayout layout = interleaved ? layout_of(matrix.rows, groups * matrix.columns, lanes, groups)
                                            : layout_of(groups * matrix.rows, matrix.columns, lanes);
  const std::int64_t row = layout.row_stride();
  return {row, interleaved ? layout.group_blocks * 2 * lanes : matrix.rows * row, layout.bin_stride};
}

}  // namespace

void CpuProduct::multiply_matrices(const FrequencyGemm& gemm, const float* a, const float* b, float* c,
                                   float* scratch) const {
  BinProducts all{.bins = gemm.bins,
                  .groups = gemm.groups,
                  .m = gemm.m,
                  .n = gemm.n,
                  .k = gemm.k,
                  .transpose_a = gemm.transpose_a,
                  .conjugate_a = gemm.conjugate_a,
                  .transpose_b = gemm.transpose_b,
                  .conjugate_b = gemm.conjugate_b,
                  .accumulate = gemm.accumulate,
                  .past_caches = false,
                  .a = a,
                  .b = b,
                  .c = c,
                  .of_a = matrices_of(gemm.a(), gemm.groups, kernels_.lanes),
                  .of_b = matrices_of(gemm.b(), gemm.groups, kernels_.lanes),
                  .of_c = matrices_of(gemm.c(), gemm.groups, kernels_.lanes),
                  .scratch = scratch};
  all.past_caches = past_caches(static_cast<std::size_t>(gemm.bins * all.of_c.bin) * sizeof(float));
  for_bins(gemm.bins, [&](std::int64_t bin, std::int64_t bins) {
    BinProducts some = all;
    some.bins = bins;
    some.a += bin * all.of_a.bin, some.b += bin * all.of_b.bin, some.c += bin * all.of_c.bin;
    some.scratch += omp_get_thread_num() * kernels_.product_scratch();
    kernels_.multiply(some);
  });
}

void CpuProduct::multiply_channels(const FrequencyGemm& gemm, const float* a, const float* b, float* c) const {
  const bool sum = gemm.transpose_a;
  const std::int64_t rows = sum ? gemm.k : gemm.m;
  const SpectrumLayout images = layout_of(rows, gemm.groups, kernels_.lanes);
  const SpectrumLayout weights = layout_of(1, gemm.groups, kernels_.lanes);
  const std::size_t image_bytes = static_cast<std::size_t>(gemm.bins * images.bin_stride) * sizeof(float);
  ChannelProducts all{.bins = gemm.bins,
                      .rows = rows,
                      .blocks = images.blocks,
                      .conjugate_b = gemm.conjugate_b,
                      .accumulate = gemm.accumulate,
                      .past_caches = !sum && past_caches(image_bytes),
                      .a = a,
                      .b = b,
                      .c = c,
                      .a_bin = images.bin_stride,
                      .b_bin = sum ? images.bin_stride : weights.bin_stride,
                      .c_bin = sum ? weights.bin_stride : images.bin_stride};
  for_bins(gemm.bins, [&](std::int64_t bin, std::int64_t bins) {
    ChannelProducts some = all;
    some.bins = bins;
    some.a += bin * all.a_bin, some.b += bin * all.b_bin, some.c += bin * all.c_bin;
    (sum ? kernels_.sum_channels : kernels_.multiply_channels)(some);
  });
}

}  // namespace twiddle
