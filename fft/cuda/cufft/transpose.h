#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "framework/device.h"

namespace twiddle {

// A complex matrix [rows][columns] to [columns][rows].
void transpose_complex(Stream& stream, std::int64_t rows, std::int64_t columns, const float2* from, float2* to);

}  // namespace twiddle
