#pragma once
#include "fft/cuda/stored_pairs/stored_spectrum.h"
#include "fft/grid.h"
#include "framework/device.h"

namespace twiddle::stored_pairs {

// The exponents of a spectrum's columns and rows, from the planes that it will be of, before it is: that of a column
// from its largest plane, and that of a row from the plane which is largest beside its column's. No number of a bin is
// larger than the sum of its plane's magnitudes. A plane that holds a NaN or Inf counts for none.
std::size_t exponents_scratch_bytes(const Planes& planes);
void find_exponents(Stream& stream, const Planes& planes, const float* values, void* scratch, int* of_columns,
                    int* of_rows);

// sums[column] = (add ? sums[column] : 0) + the sum over rows of the real parts of bin 0.
void sum_first_bin(Stream& stream, const StoredSpectrum& of, const void* spectrum, bool add, float* sums);

}  // namespace twiddle::stored_pairs
