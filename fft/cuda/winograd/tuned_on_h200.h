#pragma once

// Numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90) with CUDA 13.0. Results do not
// depend on them. All GPUs use them; on another GPU some may not be the fastest.
namespace twiddle::winograd_blocks {

// Planes of adjacent columns per block, each on one lane: a warp stores 32 adjacent floats of a bin.
constexpr int most_columns = 32;

// Elements of y in a block's tiles of a plane, if tiles are separate, and if they overlap. Tiles on seams between
// blocks are transformed by each of these blocks.
constexpr int outputs_apart = 16 * 16, outputs_overlapping = 32 * 16;

// Threads per block, and the number of blocks of this size for which a multiprocessor's registers should suffice.
constexpr int most_threads = 256, least_blocks = 3;

// Blocks become smaller until each multiprocessor has this number of them, but not smaller than `least_tiles` tiles.
constexpr int blocks_a_multiprocessor = 2, least_tiles = 2;

// Bytes of shared memory per block.
constexpr int most_staged_bytes = 72 << 10;

}  // namespace twiddle::winograd_blocks
