#include "fft/cuda/cufft/transpose.h"

#include "framework/cuda/transpose_tiles.h"

namespace twiddle {

void transpose_complex(Stream& stream, std::int64_t rows, std::int64_t columns, const float2* from, float2* to) {
  transpose_tiles<float2>(stream, {1, rows, columns, from, columns, to, rows});
}

}  // namespace twiddle
