#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fft/frequency_buffers.h"
#include "fft/frequency_product.h"
#include "fft/spectral_transform.h"
#include "framework/convolution.h"

namespace twiddle {

// A kind of spectra with all ways to make and multiply them.
struct SpectralBackend {
  std::string engine;   // its name: "fft", "cufft"
  std::string library;  // "cuFFT 12.0": whose speed is not this program's own; empty: its own
  std::vector<std::unique_ptr<SpectralTransform>> transforms;  // the usual one first
  std::vector<std::unique_ptr<FrequencyProduct>> products;     // the usual one first
};
SpectralBackend cpu_fft();
SpectralBackend cufft();  // no transforms in a build without CUDA

}  // namespace twiddle
