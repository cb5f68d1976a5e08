#include "fft/cpu/cpu_backend.h"

#include "framework/error.h"

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

SpectrumLayout layout_of(std::int64_t rows, std::int64_t columns, int lanes) {
  const std::int64_t blocks = (columns + lanes - 1) / lanes;
  return {blocks, ((rows * blocks) | 1) * 2 * lanes};
}

void CpuProduct::run(Context& /*ctx*/, const FrequencyGemm& gemm, const void* a, const void* b, void* c,
                     void* /*scratch*/) {
  require(!gemm.transpose_b, "the CPU's frequency product reduces along the rows of its second factor");
  const auto layout = [&](std::int64_t rows, std::int64_t columns) {
    return layout_of(rows, columns, kernels_.lanes).bin_stride;
  };
  const std::int64_t a_bin = gemm.transpose_a ? layout(gemm.k, gemm.m) : layout(gemm.m, gemm.k);
  const std::int64_t b_bin = layout(gemm.k, gemm.n), c_bin = layout(gemm.m, gemm.n);
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t bin = 0; bin < gemm.bins; ++bin)
    kernels_.multiply({1, gemm.m, gemm.n, gemm.k, gemm.transpose_a, gemm.conjugate_a, gemm.conjugate_b, gemm.accumulate,
                       static_cast<const float*>(a) + bin * a_bin, static_cast<const float*>(b) + bin * b_bin,
                       static_cast<float*>(c) + bin * c_bin, a_bin, b_bin, c_bin});
}

}  // namespace twiddle
