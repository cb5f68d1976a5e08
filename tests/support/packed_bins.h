#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace twiddle {

// Returns the bins that fbfft stores (see small_fft::PlaneSize) of a half spectrum [height][width / 2 + 1] of `pitch`
// planes: real and imaginary parts alternate.
std::vector<float> packed_bins(const std::vector<std::complex<double>>& half, int height, int width,
                               std::int64_t pitch);

}  // namespace twiddle
