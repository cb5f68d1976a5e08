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
  int missing = 0;  // rows and columns of padding within the transform's size
  bool inverse = false;
  double milliseconds = 0, vendor_ms = 0;  // 0: not measured
  std::int64_t vendor_bytes = 0;           // larger than bytes() if our bins are packed
  std::string failure, vendor_failure;

  std::int64_t bytes() const;
  double bytes_per_second() const { return rate(bytes(), milliseconds); }
  double vendor_bytes_per_second() const { return rate(vendor_bytes, vendor_ms); }
  double speed_up() const { return milliseconds > 0 ? vendor_ms / milliseconds : 0; }

 private:
  static double rate(std::int64_t bytes, double ms) { return ms > 0 ? static_cast<double>(bytes) / (ms * 1e-3) : 0; }
};

// Measures transforms of batches. On a GPU, compares ours with cuFFT by CUDA graph replays, which exclude launch times.
// On a CPU, compares the engine fft, whose layout is [bin][plane] in groups of planes, with FFTW, [plane][bin], if
// installed.
class FftBench {
 public:
  FftBench(Device device, double budget_ms);  // `budget_ms`: for one batch, direction and library
  bool on_gpu() const { return ctx_.stream->device().kind == Device::Kind::cuda; }
  std::string vendor() const;                      // empty: not installed
  bool fits(const FftBatch& batch) const;          // in the memory limit for planes and spectra
  double copy_bytes_per_second();                  // read and written, on the device
  std::vector<FftRow> run(const FftBatch& batch);  // forward and inverse; a failed row has the reason
  // Measures the engine fbfft's transforms of a convolution on a GPU. Square planes are padded with `missing` rows and
  // columns of zeros. The inverse crops them and applies bias and ReLU; planes 64 apart share one bias.
  std::vector<FftRow> run_in_convolution(const FftBatch& batch, int missing);

 private:
  double time(const std::function<void()>& work);
  void reserve(std::size_t planes, std::size_t spectra);  // in bytes; fills the planes with new numbers
  void run_on_gpu(std::vector<FftRow>& rows);
  void run_on_cpu(std::vector<FftRow>& rows);
  void run_engine(SpectralTransform& transform, const Planes& planes, const PlaneEpilogue& epilogue,
                  std::vector<FftRow>& rows);

  Context ctx_;
  double budget_ms_;
  std::size_t limit_;
  std::size_t plane_capacity_ = 0, spectrum_capacity_ = 0;
  std::shared_ptr<void> planes_, spectra_;
  std::unique_ptr<Fftw> fftw_;
};

}  // namespace twiddle
