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

// How planes are cut into pieces, one a block: some whole planes, or where one is too large a strip of its rows. All
// that a block computes with is an int, which costs it half of what a 64-bit number does.
struct PlanePieces {
  int planes, rows;             // of them all, and of each
  int planes_each = 1;          // planes of one piece
  int strips = 1, rows_each;    // pieces of one plane, and its rows that belong to one
  std::int64_t floats, blocks;  // what the largest piece stages, and how many there are

  // A strip of n rows stages n * row_floats + more.
  PlanePieces(std::int64_t all_planes, std::int64_t plane_rows, std::int64_t plane_floats, std::int64_t row_floats,
              std::int64_t more)
      : planes(static_cast<int>(all_planes)), rows(static_cast<int>(plane_rows)), rows_each(rows) {
    if (plane_floats <= piece_floats) {
      planes_each = static_cast<int>(piece_floats / plane_floats);
      floats = planes_each * plane_floats;
    } else {
      const int fitting = static_cast<int>(std::max<std::int64_t>((piece_floats - more) / row_floats, 1));
      rows_each = (rows + (rows + fitting - 1) / fitting - 1) / ((rows + fitting - 1) / fitting);
      strips = (rows + rows_each - 1) / rows_each;
      floats = rows_each * row_floats + more;
    }
    blocks = (all_planes + planes_each - 1) / planes_each * strips;
  }

  bool fit() const { return floats <= most_piece_floats && blocks > 0 && blocks < (std::int64_t(1) << 31); }
  // A piece begins at a float that 16 bytes need not divide: up to three before it and after it are staged with it.
  TWIDDLE_HD std::size_t shared_bytes() const { return static_cast<std::size_t>(floats / 4 + 2) * sizeof(Four); }

  struct Piece {
    int plane, planes, begin, end;  // the first plane, and rows begin to end of each
  };
  __device__ Piece at(int block) const {
    if (strips == 1) return {block * planes_each, min(planes_each, planes - block * planes_each), 0, rows};
    const int plane = block / strips, begin = (block - plane * strips) * rows_each;
    return {plane, 1, begin, min(begin + rows_each, rows)};
  }
};

// The piece of x that begins at float `begin`, to shared memory, where it begins at the float that is returned. All of
// the block's loads are under way at once.
template <int Threads = piece_threads>
__device__ int load_piece(const float* x, std::int64_t total, std::int64_t begin, int count, Four* staged) {
  const int lead = static_cast<int>(begin & 3), end = lead + count;
  const float* const from = x + begin - lead;
  const int fours = begin - lead + (end + 3) / 4 * 4 <= total ? (end + 3) / 4 : end / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < fours; i += Threads) __pipeline_memcpy_async(staged + i, from + 4 * i, sizeof(Four));
#pragma unroll 1
  for (int i = 4 * fours + threadIdx.x; i < end; i += Threads)  // of the last piece
    reinterpret_cast<float*>(staged)[i] = from[i];
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  return lead;
}

// The reverse, from shared memory to x. The fours at its ends, which it may share with its neighbours, go float by
// float.
template <int Threads = piece_threads>
__device__ void store_piece(float* x, std::int64_t begin, int count, const Four* staged) {
  const int lead = static_cast<int>(begin & 3), end = lead + count, thread = static_cast<int>(threadIdx.x);
  const int first = lead > 0 ? 1 : 0, past = max(end / 4, first);  // fours that are its own
  float* const to = x + begin - lead;
#pragma unroll 1
  for (int i = first + thread; i < past; i += Threads) reinterpret_cast<Four*>(to)[i] = staged[i];
  if (thread >= 4) return;
  const float* const from = reinterpret_cast<const float*>(staged);
  const int before = lead + thread, after = 4 * past + thread;
  if (before < min(4 * first, end)) to[before] = from[before];
  if (after < end) to[after] = from[after];
}

}  // namespace twiddle
