#pragma once
#include <cstdint>

#include "fft/cuda/cufft/pad_crop_device.h"

namespace twiddle {

// Copies planes [first, first + count) of an operand's tensor, counted row by row of the matrix of planes, to padded
// ones (pad_crop_device.h), with zeros around the window.
void pad_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* source,
                float* padded);
// The inverse: copies the window back, divided by the points of the grid, and applies the epilogue.
void crop_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* padded,
                 float* target, const PlaneEpilogue& epilogue);

}  // namespace twiddle
