#include "layers/conv/cuda/nhwc.h"

#include <algorithm>

#include "framework/for_each.h"

namespace twiddle {

namespace {

constexpr int tile = 32, rows_at_once = 8;

// One tile a block at a time: read along the columns, written along the rows, through shared memory.
__global__ void transpose_kernel(std::int64_t tiles, std::int64_t rows, std::int64_t columns, const float* from,
                                 float* to) {
  __shared__ float staged[tile][tile + 1];  // the odd width keeps a column's elements in banks of their own
  const std::int64_t tiles_across = (columns + tile - 1) / tile, tiles_down = (rows + tile - 1) / tile;
  for (std::int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const std::int64_t across = index % tiles_across * tile, down = index / tiles_across % tiles_down * tile;
    const std::int64_t matrix = index / tiles_across / tiles_down * rows * columns;
    for (int i = threadIdx.y; i < tile; i += rows_at_once)
      if (down + i < rows && across + threadIdx.x < columns)
        staged[i][threadIdx.x] = from[matrix + (down + i) * columns + across + threadIdx.x];
    __syncthreads();
    for (int i = threadIdx.y; i < tile; i += rows_at_once)
      if (across + i < columns && down + threadIdx.x < rows)
        to[matrix + (across + i) * rows + down + threadIdx.x] = staged[threadIdx.x][i];
    __syncthreads();
  }
}

// [rows][few columns]: a tile would be mostly empty. Read in order, written in stretches of the row count.
struct TransposeElement {
  std::int64_t rows, columns;
  const float* from;
  float* to;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = i % rows, column = i / rows % columns, matrix = i / rows / columns * rows * columns;
    to[i] = from[matrix + row * columns + column];
  }
};

}  // namespace

void transpose_planes(Stream& stream, std::int64_t count, std::int64_t rows, std::int64_t columns, const float* from,
                      float* to) {
  // Few rows or columns: neighbouring threads share the cache lines that they read, so that nothing is gained by tiles.
  if (rows < tile / 2 || columns < tile / 2)
    return for_each_index(stream, count * rows * columns, TransposeElement{rows, columns, from, to});
  const std::int64_t tiles = count * ((rows + tile - 1) / tile) * ((columns + tile - 1) / tile);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, 1 << 20));
  transpose_kernel<<<blocks, dim3(tile, rows_at_once), 0, static_cast<cudaStream_t>(stream.native())>>>(
      tiles, rows, columns, from, to);
  detail::check_launch();
}

}  // namespace twiddle
