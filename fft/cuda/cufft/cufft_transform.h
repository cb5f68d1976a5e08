#pragma once
#include <functional>
#include <memory>
#include <string>

#include "fft/cuda/cufft/cufft_plans.h"
#include "fft/spectral_transform.h"

namespace twiddle {

// Spectra by cuFFT, in the steps of Table 1 in Vasilache et al., Fast Convolutional Nets With fbfft, 2015: planes are
// padded with zeros, transformed, and transposed from [plane][bin] to [bin][plane].
class CufftTransform : public SpectralTransform {
 public:
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::size_t spectrum_bytes(const Planes& planes) const override;
};

// With a transpose as a step of its own.
class TransposingCufftTransform final : public CufftTransform {
 public:
  // A complex matrix [rows][columns] to [columns][rows], with the pitches of both.
  using Transpose = std::function<void(Stream& stream, std::int64_t rows, std::int64_t columns, const float2* from,
                                       std::int64_t from_pitch, float2* to, std::int64_t to_pitch)>;
  TransposingCufftTransform(std::string name, std::shared_ptr<CufftPlans> plans, Transpose transpose)
      : name_(std::move(name)), plans_(std::move(plans)), transpose_(std::move(transpose)) {}

  std::string_view name() const override { return name_; }
  std::size_t scratch_bytes(const Planes& planes) const override;
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override;

 private:
  WorkArea work_area(const Planes& planes, void* scratch) const;

  std::string name_;
  std::shared_ptr<CufftPlans> plans_;
  Transpose transpose_;
};

// cuFFT itself writes and reads [bin][plane].
class StridedCufftTransform final : public CufftTransform {
 public:
  explicit StridedCufftTransform(std::shared_ptr<CufftPlans> plans) : plans_(std::move(plans)) {}

  std::string_view name() const override { return "strided"; }
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::size_t scratch_bytes(const Planes& planes) const override;
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override;

 private:
  std::shared_ptr<CufftPlans> plans_;
};

}  // namespace twiddle
