#pragma once
#include <cuda_pipeline.h>

#include <algorithm>
#include <cstdint>

#include "framework/for_each.h"

namespace twiddle {

constexpr int piece_threads = 256;
// A piece of 12.8 kB holds a plane of 56 x 56, and a multiprocessor eight blocks of them: while some wait for memory,
// others compute. Rows too long for that get all that a block may have without asking.
constexpr std::int64_t piece_floats = 3200, most_piece_floats = 12280;

// How planes are cut into pieces, one a block: some whole planes, or where one is too large a strip of its rows.
struct PlanePieces {
  std::int64_t planes, rows;         // of them all, and of each
  std::int64_t planes_each, strips;  // planes of one piece, and pieces of one plane: one of them is 1
  std::int64_t rows_each;            // of a plane that belong to one piece
  std::int64_t floats;               // that the largest piece stages

  // A strip of n rows stages n * row_floats + more.
  PlanePieces(std::int64_t all_planes, std::int64_t plane_rows, std::int64_t plane_floats, std::int64_t row_floats,
              std::int64_t more)
      : planes(all_planes), rows(plane_rows), planes_each(1), strips(1), rows_each(plane_rows), floats(plane_floats) {
    if (plane_floats <= piece_floats) {
      planes_each = piece_floats / plane_floats;
      floats = planes_each * plane_floats;
      return;
    }
    const std::int64_t fitting = std::max<std::int64_t>((piece_floats - more) / row_floats, 1);
    strips = (plane_rows + fitting - 1) / fitting;
    rows_each = (plane_rows + strips - 1) / strips;
    strips = (plane_rows + rows_each - 1) / rows_each;
    floats = rows_each * row_floats + more;
  }

  bool fit() const { return floats <= most_piece_floats && blocks() > 0 && blocks() < (std::int64_t(1) << 31); }
  std::int64_t blocks() const { return (planes + planes_each - 1) / planes_each * strips; }
  // A piece begins at a float that 16 bytes need not divide: up to three before it and after it are staged with it.
  std::size_t shared_bytes() const { return static_cast<std::size_t>(floats / 4 + 2) * sizeof(Four); }

  struct Piece {
    std::int64_t plane;      // the first
    int planes, begin, end;  // rows begin to end of each
  };
  __device__ Piece at(unsigned block) const {
    const auto cuts = static_cast<unsigned>(strips), group = block / cuts;
    const std::int64_t plane = group * planes_each, left = planes - plane;
    const auto first = static_cast<int>((block - group * cuts) * rows_each);
    return {plane, static_cast<int>(left < planes_each ? left : planes_each), first,
            min(first + static_cast<int>(rows_each), static_cast<int>(rows))};
  }
};

// The piece of x that begins at float `begin`, to shared memory, where it begins at the float that is returned. All of
// the block's loads are under way at once.
__device__ inline int load_piece(const float* x, std::int64_t total, std::int64_t begin, int count, Four* staged) {
  const int lead = static_cast<int>(begin % 4), end = lead + count;
  const float* const from = x + begin - lead;
  const int fours = begin - lead + (end + 3) / 4 * 4 <= total ? (end + 3) / 4 : end / 4;
  for (int i = threadIdx.x; i < fours; i += piece_threads)
    __pipeline_memcpy_async(staged + i, from + 4 * i, sizeof(Four));
  for (int i = 4 * fours + threadIdx.x; i < end; i += piece_threads)  // of the last piece
    reinterpret_cast<float*>(staged)[i] = from[i];
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  return lead;
}

// The way back. Fours that neighbouring pieces share go float by float.
__device__ inline void store_piece(float* x, std::int64_t begin, int count, const Four* staged) {
  const int lead = static_cast<int>(begin % 4), end = lead + count;
  float* const to = x + begin - lead;
  for (int i = threadIdx.x; i < (end + 3) / 4; i += piece_threads) {
    const Four four = staged[i];
    if (4 * i >= lead && 4 * i + 4 <= end)
      reinterpret_cast<Four*>(to)[i] = four;
    else
      for (int k = 0; k < 4; ++k)
        if (4 * i + k >= lead && 4 * i + k < end) to[4 * i + k] = four.at[k];
  }
}

}  // namespace twiddle
