#pragma once
#include "framework/error.h"
#include "framework/for_each.h"

// A transpose through tiles of shared memory, for .cu files.
namespace twiddle {

// Transposes `count` consecutive matrices [rows][columns] to [columns][rows]. A pitch is the distance from row to row,
// in elements.
template <class Element>
struct MatricesToTranspose {
  std::int64_t count, rows, columns;
  const Element* from;
  std::int64_t from_pitch;
  Element* to;
  std::int64_t to_pitch;
};

namespace detail {

constexpr int transposed_tile = 32, transposed_rows_at_once = 8;

// One tile a block, through shared memory, so that the accesses of a warp are coalesced, both loads and stores.
// Adjacent blocks write adjacent tiles, since scattered writes cost more than scattered reads.
template <class Element>
__global__ void __launch_bounds__(transposed_tile* transposed_rows_at_once)
    transpose_kernel(unsigned tiles_down, unsigned tiles_across, const MatricesToTranspose<Element> matrices) {
  constexpr int tile = transposed_tile, rows_at_once = transposed_rows_at_once;
  __shared__ Element staged[tile][tile + 1];  // the odd pitch avoids bank conflicts of a column
  const unsigned column_of_tiles = blockIdx.x / tiles_down, matrix = column_of_tiles / tiles_across;
  const std::int64_t down = std::int64_t(blockIdx.x % tiles_down) * tile, rows = matrices.rows;
  const std::int64_t across = std::int64_t(column_of_tiles % tiles_across) * tile, columns = matrices.columns;
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  // Loads past the edges are clamped to the last row and column, and not stored: loads without a condition are all in
  // flight at once.
  const Element* __restrict__ const from =
      matrices.from + matrix * rows * matrices.from_pitch + min(across + lane, columns - 1);
  Element values[tile / rows_at_once];
#pragma unroll
  for (int k = 0; k < tile / rows_at_once; ++k)
    values[k] = from[min(down + first + k * rows_at_once, rows - 1) * matrices.from_pitch];
#pragma unroll
  for (int k = 0; k < tile / rows_at_once; ++k) staged[first + k * rows_at_once][lane] = values[k];
  __syncthreads();
  if (down + lane >= rows) return;
  Element* __restrict__ const to = matrices.to + matrix * columns * matrices.to_pitch + down + lane;
#pragma unroll
  for (int step = 0; step < tile; step += rows_at_once)
    if (const int i = first + step; across + i < columns) to[(across + i) * matrices.to_pitch] = staged[lane][i];
}

}  // namespace detail

template <class Element>
void transpose_tiles(Stream& stream, const MatricesToTranspose<Element>& matrices) {
  constexpr int tile = detail::transposed_tile;
  const std::int64_t down = (matrices.rows + tile - 1) / tile, across = (matrices.columns + tile - 1) / tile;
  const std::int64_t tiles = matrices.count * down * across;
  if (tiles == 0) return;
  require(tiles < std::int64_t(1) << 31, matrices.count, " matrices of ", matrices.rows, "x", matrices.columns,
          " are too large to transpose at once");
  detail::transpose_kernel<<<static_cast<unsigned>(tiles), dim3(tile, detail::transposed_rows_at_once), 0,
                             detail::native(stream)>>>(static_cast<unsigned>(down), static_cast<unsigned>(across),
                                                       matrices);
  detail::check_launch();
}

}  // namespace twiddle
