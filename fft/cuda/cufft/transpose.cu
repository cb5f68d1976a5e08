#include "fft/cuda/cufft/transpose.h"

#include "fft/cuda/cufft/tuned_on_h200.h"
#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

constexpr int tile = 32, rows_at_once = transposed_rows_at_once;

// One tile a block, through shared memory, so that both loads and stores are coalesced, 256 bytes a warp. Adjacent
// blocks write adjacent tiles, since scattered writes cost more than scattered reads.
__global__ void __launch_bounds__(tile* rows_at_once)
    transpose_kernel(unsigned tiles_down, std::int64_t rows, std::int64_t columns, const float2* __restrict__ from,
                     std::int64_t from_pitch, float2* __restrict__ to, std::int64_t to_pitch) {
  __shared__ float2 staged[tile][tile + 1];  // the odd pitch avoids bank conflicts of a column
  const std::int64_t down = std::int64_t(blockIdx.x % tiles_down) * tile;
  const std::int64_t across = std::int64_t(blockIdx.x / tiles_down) * tile;
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  // Loads past the edges are clamped to the last row and column, and not stored: loads without a condition are all in
  // flight at once.
  const float2* const source = from + min(across + lane, columns - 1);
  float2 values[tile / rows_at_once];
#pragma unroll
  for (int k = 0; k < tile / rows_at_once; ++k)
    values[k] = source[min(down + first + k * rows_at_once, rows - 1) * from_pitch];
#pragma unroll
  for (int k = 0; k < tile / rows_at_once; ++k) staged[first + k * rows_at_once][lane] = values[k];
  __syncthreads();
  if (down + lane >= rows) return;
#pragma unroll
  for (int step = 0; step < tile; step += rows_at_once)
    if (const int i = first + step; across + i < columns) to[(across + i) * to_pitch + down + lane] = staged[lane][i];
}

}  // namespace

void transpose_complex(Stream& stream, std::int64_t rows, std::int64_t columns, const float2* from,
                       std::int64_t from_pitch, float2* to, std::int64_t to_pitch) {
  if (rows == 0 || columns == 0) return;
  const std::int64_t tiles_down = (rows + tile - 1) / tile, tiles = tiles_down * ((columns + tile - 1) / tile);
  require(tiles < std::int64_t(1) << 31, "a matrix of ", rows, "x", columns, " is too large to transpose at once");
  transpose_kernel<<<static_cast<unsigned>(tiles), dim3(tile, rows_at_once), 0, detail::native(stream)>>>(
      static_cast<unsigned>(tiles_down), rows, columns, from, from_pitch, to, to_pitch);
  detail::check_launch();
}

}  // namespace twiddle
