#pragma once
#include <cstdint>

#include "fft/spectral_transform.h"

namespace twiddle {

// Real planes of a grid as cuFFT transforms them in place: [plane][height][padded_width], a row having the room of its
// width / 2 + 1 bins.
inline int padded_width(const FrequencyGrid& grid) {
  return 2 * (grid.width / 2 + 1);
}

// Planes [first, first + count) of an operand's tensor, counted row by row, to padded ones; zeros around the window.
void pad_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* source,
                float* padded);
// The way back, divided by the points of the grid.
void crop_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* padded,
                 float* target, const PlaneEpilogue& epilogue);

}  // namespace twiddle
