#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/batched_fft.h"
#include "apps/bench/fftw.h"
#include "fft/spectral_transform.h"
#include "framework/context.h"

namespace twiddle {

// One batch of real transforms in one direction.
struct FftRow {
  FftBatch batch;
  int missing = 0;  // rows and columns that planes have fewer than the transform has
  bool inverse = false;
  double milliseconds = 0, vendor_ms = 0;  // 0: not measured
  std::int64_t vendor_bytes = 0;           // it packs no bins
  std::string failure, vendor_failure;

  std::int64_t bytes() const;
  double bytes_per_second() const { return rate(bytes(), milliseconds); }
  double vendor_bytes_per_second() const { return rate(vendor_bytes, vendor_ms); }
  double speed_up() const { return milliseconds > 0 ? vendor_ms / milliseconds : 0; }

 private:
  static double rate(std::int64_t bytes, double ms) { return ms > 0 ? static_cast<double>(bytes) / (ms * 1e-3) : 0; }
};

// Measures transforms of batches: on a GPU ours beside cuFFT, by replays of a graph, so that launches do not
// decide; on a CPU those of the engine fft, whose bins lie [bin][plane] in groups of planes, beside FFTW's,
// [plane][bin], where that is installed.
class FftBench {
 public:
  FftBench(Device device, double budget_ms);  // for one batch, direction and library
  bool on_gpu() const { return ctx_.stream->device().kind == Device::Kind::cuda; }
  std::string vendor() const;                      // empty: there is none here
  bool fits(const FftBatch& batch) const;          // in the memory that is taken for planes and spectra
  double copy_bytes_per_second();                  // read and written, on the device
  std::vector<FftRow> run(const FftBatch& batch);  // forwards and backwards; what fails says why
  // The transforms of a convolution by the engine fbfft, on a GPU: square planes that lack `missing` rows and columns
  // get zeros there; back these are cropped, and a bias, of which planes 64 apart share one, and ReLU are applied.
  std::vector<FftRow> run_in_convolution(const FftBatch& batch, int missing);

 private:
  double time(const std::function<void()>& work);
  void reserve(std::size_t planes, std::size_t spectra);  // bytes; the planes get new numbers
  void run_on_gpu(std::vector<FftRow>& rows);
  void run_on_cpu(std::vector<FftRow>& rows);
  void run_engine(SpectralTransform& transform, const Planes& planes, const PlaneEpilogue& epilogue,
                  std::vector<FftRow>& rows);

  Context ctx_;
  double budget_ms_;
  std::size_t limit_;
  std::size_t plane_room_ = 0, spectrum_room_ = 0;
  std::shared_ptr<void> planes_, spectra_;
  std::unique_ptr<Fftw> fftw_;
};

}  // namespace twiddle
