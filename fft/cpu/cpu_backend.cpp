#include "fft/cpu/cpu_backend.h"

#include <omp.h>

#include <algorithm>

namespace twiddle {

SpectralBackend cpu_fft(InstructionSet set) {
  SpectralBackend backend;
  backend.engine = "fft";
  backend.transforms.push_back(std::make_unique<CpuTransform>(set));
  backend.products.push_back(std::make_unique<CpuProduct>(set));
  return backend;
}

SpectralBackend cpu_fft() {
  return cpu_fft(best_instruction_set());
}

bool past_caches(std::size_t bytes) {
  return bytes > std::size_t(2) << 20;
}

SpectrumLayout layout_of(std::int64_t rows, std::int64_t columns, int lanes) {
  const std::int64_t blocks = (columns + lanes - 1) / lanes;
  return {blocks, ((rows * blocks) | 1) * 2 * lanes};
}

std::size_t CpuProduct::scratch_bytes(const FrequencyGemm& /*gemm*/) const {
  return static_cast<std::size_t>(omp_get_max_threads() * kernels_.product_scratch()) * sizeof(float);
}

void CpuProduct::run(Context& /*ctx*/, const FrequencyGemm& gemm, const void* a, const void* b, void* c,
                     void* scratch) {
  const auto bin_stride = [&](std::int64_t rows, std::int64_t columns, bool turned) {
    return turned ? layout_of(columns, rows, kernels_.lanes).bin_stride
                  : layout_of(rows, columns, kernels_.lanes).bin_stride;
  };
  BinProducts all{.bins = gemm.bins,
                  .m = gemm.m,
                  .n = gemm.n,
                  .k = gemm.k,
                  .transpose_a = gemm.transpose_a,
                  .conjugate_a = gemm.conjugate_a,
                  .transpose_b = gemm.transpose_b,
                  .conjugate_b = gemm.conjugate_b,
                  .accumulate = gemm.accumulate,
                  .past_caches = false,
                  .a = static_cast<const float*>(a),
                  .b = static_cast<const float*>(b),
                  .c = static_cast<float*>(c),
                  .a_bin = bin_stride(gemm.m, gemm.k, gemm.transpose_a),
                  .b_bin = bin_stride(gemm.k, gemm.n, gemm.transpose_b),
                  .c_bin = bin_stride(gemm.m, gemm.n, false),
                  .scratch = static_cast<float*>(scratch)};
  all.past_caches = past_caches(static_cast<std::size_t>(gemm.bins * all.c_bin) * sizeof(float));
  // Bins that a thread takes at a time: while one is multiplied, the factors of the next are prefetched.
  const std::int64_t together = std::clamp<std::int64_t>(gemm.bins / (8 * omp_get_max_threads()), 1, 32);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t bin = 0; bin < gemm.bins; bin += together) {
    BinProducts some = all;
    some.bins = std::min(together, gemm.bins - bin);
    some.a += bin * all.a_bin, some.b += bin * all.b_bin, some.c += bin * all.c_bin;
    some.scratch += omp_get_thread_num() * kernels_.product_scratch();
    kernels_.multiply(some);
  }
}

}  // namespace twiddle
