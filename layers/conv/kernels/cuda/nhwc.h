#pragma once
#include <cstdint>

#include "framework/device.h"

namespace twiddle {

// `count` matrices [rows][columns] one after the other, each transposed: NCHW to NHWC with rows = channels and columns
// = height * width, and back with the two swapped. Elements have 4 bytes, or 2.
void transpose_planes(Stream& stream, std::int64_t count, std::int64_t rows, std::int64_t columns, int element_bytes,
                      const void* from, void* to);

}  // namespace twiddle
