#pragma once
#include "fft/cpu/kernels.h"
#include "fft/winograd/winograd_transform.h"

namespace twiddle {

// Returns the floats from bin to bin of a matrix of planes: an odd number of cache lines, so that the bins of one tile,
// which are computed together, do not map to the same cache sets. With a power-of-two stride, transforms take twice as
// long.
std::int64_t winograd_bin_stride(std::int64_t rows, std::int64_t columns);

// Winograd's transforms on a CPU, vectorised over adjacent planes.
template <int outputs>
class CpuWinograd final : public WinogradTransform<outputs> {
 public:
  explicit CpuWinograd(InstructionSet set) : kernels_(kernels_for(set)) {}
  SpectrumStorage storage() const override { return SpectrumStorage::real_apart; }
  std::size_t spectrum_bytes(const Planes& planes) const override;
  std::size_t scratch_bytes(const Planes& planes) const override;
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override;
  void sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add, float* sums) override;

 private:
  CpuKernels kernels_;
};

}  // namespace twiddle
