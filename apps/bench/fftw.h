#pragma once
#include <memory>
#include <string>

#include "apps/bench/batched_fft.h"

namespace twiddle {

// FFTW, for comparison. Its library is loaded on first use and never linked.
class Fftw {
 public:
  // Returns null if libfftw3f.so.3 is not installed.
  static std::unique_ptr<Fftw> find();
  ~Fftw();
  std::string version() const;  // "fftw-3.3.10-sse2-avx"

  // Plane-major, in one direction, on all threads. Planning overwrites both arrays.
  class Plan;
  std::unique_ptr<Plan> plan(const FftBatch& batch, bool inverse, float* planes, void* spectra) const;

 private:
  struct Functions;
  explicit Fftw(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

class Fftw::Plan {
 public:
  Plan(const Functions& functions, void* plan) : functions_(functions), plan_(plan) {}
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  void run();

 private:
  const Functions& functions_;
  void* plan_;
};

}  // namespace twiddle
