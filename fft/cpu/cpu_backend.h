#pragma once
#include <map>

#include "fft/cpu/fft_plan.h"
#include "fft/cpu/kernels.h"
#include "fft/spectral_engine.h"

namespace twiddle {

SpectralBackend cpu_fft(InstructionSet set);  // for a processor that has it

// Strides of one operand's matrices in a spectrum; a matrix has the columns of `groups` groups. Bins are an odd number
// of blocks apart, so that they do not map to the same cache sets.
struct SpectrumLayout {
  int lanes;
  std::int64_t group_columns;
  std::int64_t group_blocks;  // of `lanes` columns, the last one padded
  std::int64_t blocks;        // of all groups, per row
  std::int64_t bin_stride;    // floats

  std::int64_t row_stride() const { return blocks * 2 * lanes; }
  std::int64_t column(std::int64_t block) const {
    return block / group_blocks * group_columns + block % group_blocks * lanes;
  }
  int columns_in(std::int64_t block) const;
};
SpectrumLayout layout_of(std::int64_t rows, std::int64_t columns, int lanes, std::int64_t groups = 1);
SpectrumLayout layout_of(const Planes& planes, int lanes);
// Returns whether a spectrum of `bytes` is written by non-temporal stores: caches would evict it before it is read.
bool past_caches(std::size_t bytes);

// Real transforms, of rows of an even number of points, vectorised over adjacent planes.
class CpuTransform : public SpectralTransform {
 public:
  explicit CpuTransform(InstructionSet set) : kernels_(kernels_for(set)) {}
  // Returns the factor of spectra: about that of a unitary transform, rounded to a power of two, so that scaling is
  // exact. Bins are no larger than their results, so that no bin overflows unless a result does.
  static double scale(const FrequencyGrid& grid);
  std::string_view name() const override { return "planes"; }
  SpectrumStorage storage() const override { return SpectrumStorage::split_blocks; }
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::int64_t bins(const FrequencyGrid& grid) const override;
  std::size_t spectrum_bytes(const Planes& planes) const override;
  std::size_t scratch_bytes(const Planes& planes) const override;
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override;
  // Transforms back the products of each plane's bins by those of its channel's kernel, or by their conjugates, one
  // block of planes at a time. Products stay in the caches.
  bool inverts_products(const Planes& planes) const;
  std::size_t product_scratch_bytes(const Planes& planes) const;
  void inverse_of_products(const Planes& planes, const float* spectrum, const float* kernels, bool conjugate,
                           float* target, const PlaneEpilogue& epilogue, void* scratch);
  bool masks_and_sums() const override { return true; }
  void sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add, float* sums) override;

 private:
  const FftPlan& plan(int points);
  const std::vector<float>& row_roots(int points);
  const std::vector<float>& few_roots(int points, int few);
  // Returns the fields that all blocks have in common.
  PlaneTransform of_planes(const Planes& planes, float* spectrum, void* scratch);
  PlaneTransform inverse_of_planes(const Planes& planes, const float* spectrum, const PlaneEpilogue& epilogue,
                                   void* scratch);
  FewPoints few(const Planes& planes, float* spectrum, void* scratch);

  CpuKernels kernels_;
  std::map<int, FftPlan> plans_;
  std::map<int, std::vector<float>> row_roots_;
  std::map<std::pair<int, int>, std::vector<float>> few_roots_;
};

// Computes depthwise products within the inverse transform.
class CpuChannelInverse : public FusedInverse {
 public:
  explicit CpuChannelInverse(InstructionSet set) : transform_(set) {}
  std::string_view name() const override { return "in the inverse"; }
  SpectrumStorage storage() const override { return transform_.storage(); }
  bool supports(const FrequencyGemm& gemm, const Planes& planes) const override {
    return gemm.is_depthwise() && !gemm.transpose_a && transform_.inverts_products(planes);
  }
  std::size_t scratch_bytes(const Planes& planes) const override { return transform_.product_scratch_bytes(planes); }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, const Planes& planes, float* target,
           const PlaneEpilogue& epilogue, void* scratch) override;

 private:
  CpuTransform transform_;
};

// Multiplies bins, each on one thread: matrices, or, if depthwise, one channel per lane.
class CpuProduct : public FrequencyProduct {
 public:
  explicit CpuProduct(InstructionSet set) : kernels_(kernels_for(set)) {}
  std::string_view name() const override { return "bins"; }
  SpectrumStorage storage() const override { return SpectrumStorage::split_blocks; }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override;
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override;

 private:
  void multiply_matrices(const FrequencyGemm& gemm, const float* a, const float* b, float* c, float* scratch) const;
  void multiply_channels(const FrequencyGemm& gemm, const float* a, const float* b, float* c) const;

  CpuKernels kernels_;
};

}  // namespace twiddle
