#pragma once
#include "fft/cuda/stored_pairs/stored_spectrum.h"
#include "fft/grid.h"
#include "framework/device.h"

namespace twiddle::stored_pairs {

// Computes the exponents of a spectrum's columns and rows from its planes, before the spectrum: a column's from its
// largest plane, a row's from the plane that is largest relative to its column. No number of a bin exceeds the sum of
// its plane's magnitudes. Planes with NaN or Inf are ignored.
std::size_t exponents_scratch_bytes(const Planes& planes);
void find_exponents(Stream& stream, const Planes& planes, const float* values, void* scratch, int* of_columns,
                    int* of_rows);

// sums[column] = (add ? sums[column] : 0) + the sum over rows of the real parts of bin 0.
void sum_first_bin(Stream& stream, const StoredSpectrum& of, const void* spectrum, bool add, float* sums);

}  // namespace twiddle::stored_pairs
