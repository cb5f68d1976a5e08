#pragma once

// Numbers of this folder that follow from no rule, and with which it was measured: on one NVIDIA H200 (sm_90) with CUDA
// 13.0. Results do not depend on them, and every GPU runs with all of them; on another some may not be the fastest.
namespace twiddle::winograd_blocks {

// Planes of adjacent columns a block, one a lane: a warp stores 32 adjacent floats of a bin.
constexpr int most_columns = 32;

// Elements of y in the tiles of a plane that a block has, where tiles lie apart, and where they overlap: those on the
// seams between blocks are transformed by each of them.
constexpr int outputs_apart = 16 * 16, outputs_overlapping = 32 * 16;

// Threads of a block, and how many blocks of so many a multiprocessor's registers should suffice for.
constexpr int most_threads = 256, least_blocks = 3;

// Smaller blocks are taken until there are so many for each multiprocessor, but none below so many tiles.
constexpr int blocks_a_multiprocessor = 2, least_tiles = 2;

// Bytes of shared memory a block.
constexpr int most_staged_bytes = 72 << 10;

}  // namespace twiddle::winograd_blocks
