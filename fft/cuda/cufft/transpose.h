#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "framework/device.h"

namespace twiddle {

// A complex matrix [rows][columns] to [columns][rows]; pitches in elements.
void transpose_complex(Stream& stream, std::int64_t rows, std::int64_t columns, const float2* from,
                       std::int64_t from_pitch, float2* to, std::int64_t to_pitch);

}  // namespace twiddle
