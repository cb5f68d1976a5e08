#pragma once
#include <complex>
#include <cstdint>
#include <vector>

#include "apps/bench/batched_fft.h"

namespace twiddle {

// The spectra of real planes by definition, with sums in double, for bins 0 .. width / 2 of each row:
// [plane][row][bin].
std::vector<std::complex<double>> plain_spectra(const std::vector<float>& planes, int height, int width);

// Returns the relative error of a batch's bins, as stored, over planes [first, first + spectra.size() / bins per
// plane).
double error_of_spectra(const FftBatch& batch, const std::vector<float>& numbers,
                        const std::vector<std::complex<double>>& spectra, std::int64_t first = 0);

}  // namespace twiddle
