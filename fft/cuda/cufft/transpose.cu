#include "fft/cuda/cufft/transpose.h"

#include "framework/cuda/transpose_tiles.h"

namespace twiddle {

void transpose_complex(Stream& stream, std::int64_t rows, std::int64_t columns, const float2* from,
                       std::int64_t from_pitch, float2* to, std::int64_t to_pitch) {
  transpose_tiles<float2>(stream, {1, rows, columns, from, from_pitch, to, to_pitch});
}

}  // namespace twiddle
