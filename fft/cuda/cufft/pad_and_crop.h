#pragma once
#include <cstdint>

#include "fft/cuda/cufft/pad_crop_device.h"

namespace twiddle {

// Planes [first, first + count) of an operand's tensor, counted row by row, to padded ones; zeros around the window.
void pad_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* source,
                float* padded);
// The way back, divided by the points of the grid.
void crop_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* padded,
                 float* target, const PlaneEpilogue& epilogue);

}  // namespace twiddle
