#pragma once
#include <cstdint>

// All numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90, 132 multiprocessors) with
// CUDA 13.0; docs/results/runs/0081 has the table. Results do not depend on any of them, and every GPU runs with all of
// them; on another one some may not be the fastest. `engine: measured` chooses grids and products on the current GPU,
// but none of these numbers.
namespace twiddle::small_fft {

// How many planes a block takes, and how many resident blocks the registers of a multiprocessor should suffice for (the
// second argument of __launch_bounds__). An inverse may prefetch the bins of the block that will take its place: that
// pays where so few blocks are resident that there is little else to load meanwhile.
struct BlockShape {
  int planes = 0, min_blocks = 0;
  bool prefetch = false;
};

// The shapes of one direction's blocks for fewer than many_planes, and for as many and more. Which is fastest depends
// on the number of waves of blocks: of few waves, blocks of few planes leave less of the last one idle; in many waves,
// blocks of many planes access longer contiguous ranges of each bin.
struct BlockShapes {
  BlockShape few, many;
  constexpr BlockShapes(BlockShape all) : BlockShapes(all, all) {}
  constexpr BlockShapes(BlockShape of_few, BlockShape of_many) : few(of_few), many(of_many) {}
};
constexpr std::int64_t many_planes = 1 << 16;

// Blocks of fewer planes than these write fp16 values in pieces of less than a sector of memory, which takes 2.5 times
// as long as floats; larger blocks take 1.0 to 1.1 times as long.
constexpr int least_planes_of_halves = 16;

struct PlaneShape {
  int height, width;
  BlockShapes forward, inverse = forward;
};

// Every size that fbfft transforms. If grids are estimated to be equally fast, the first one here is proposed first.
constexpr PlaneShape plane_shapes[] = {
    {2, 2, BlockShape{128, 8}},
    {4, 4, BlockShape{64, 8}},
    {8, 8, BlockShape{32, 8}},
    {10, 10, BlockShape{32, 8}},
    {12, 12, BlockShape{32, 6}},
    {14, 14, BlockShape{32, 5}},
    {16, 16, BlockShape{32, 4}},
    {18, 18, BlockShape{32, 3}},
    {20, 20, BlockShape{32, 3}},
    {24, 24, BlockShapes{{8, 8}, {32, 2}}},
    {28, 28, BlockShapes{{8, 6}, {16, 3}}, BlockShapes{{8, 5, true}, {16, 3}}},
    {30, 30, BlockShapes{{8, 4}, {16, 2}}, BlockShapes{{8, 4, true}, {8, 4}}},
    {32, 32, BlockShapes{{8, 4}, {16, 2}}, BlockShapes{{8, 4, true}, {32, 1}}},
    {36, 36, BlockShapes{{8, 4}, {16, 2}}, BlockShapes{{8, 4, true}, {8, 4}}},
    {40, 40, BlockShape{8, 3}, BlockShape{8, 2, true}},
    {42, 42, BlockShape{8, 2}},
    {48, 48, BlockShape{8, 2}},
    {56, 56, BlockShape{8, 1}},
    {64, 64, BlockShape{8, 1}, BlockShape{8, 1, true}},
    // Twice as wide as high, and of powers of two some four times.
    {8, 16, BlockShape{32, 4}},
    {8, 32, BlockShape{16, 3}},
    {10, 20, BlockShape{32, 3}, BlockShape{32, 4}},
    {12, 24, BlockShape{32, 2}},
    {14, 28, BlockShape{16, 3}, BlockShape{32, 2}},
    {16, 32, BlockShape{16, 3}},
    {16, 64, BlockShape{8, 2}, BlockShape{4, 3}},
    {18, 36, BlockShape{8, 4}},
    {20, 40, BlockShape{16, 2}},
    {24, 48, BlockShape{8, 2}},
    {32, 64, BlockShape{4, 3}},
    // Twice as high as wide.
    {16, 8, BlockShape{32, 4}},
    {32, 8, BlockShape{16, 3}},
    {20, 10, BlockShapes{{32, 4}, {32, 3}}, BlockShape{32, 4}},
    {24, 12, BlockShape{32, 2}, BlockShape{32, 3}},
    {28, 14, BlockShape{16, 3}, BlockShape{32, 2}},
    {32, 16, BlockShape{16, 3}},
    {64, 16, BlockShape{4, 3}, BlockShape{16, 1}},
    {36, 18, BlockShape{8, 4}},
    {40, 20, BlockShape{16, 2}},
    {48, 24, BlockShape{8, 2}, BlockShape{8, 3}},
    {64, 32, BlockShape{4, 3}},
};

// Rows of planes from which on an inverse writes them from registers rather than through shared memory, though they are
// not aligned to sectors (plane_arguments.h): written two elements at a time, or one.
constexpr int long_row_of_pairs = 20, long_row = 44;

// Tiles from this width on are accumulated by atomics, 7 to 35 % faster than by a load and a store; smaller ones were
// up to 40 % slower by atomics (plane_store.h).
constexpr int least_width_of_atomics = 24;

// Rates for the estimate by which fbfft_grids.cpp sorts the grids. Bytes that transforms and products move in a ms: as
// a copy does, and less beyond 32 points (VGG's first layer takes 1.24 ms forward in 48x48 tiles and 0.80 ms in 30x30,
// of the same size). Real operations in a ms: those that cuBLAS reaches with complex numbers.
constexpr double bytes_a_ms_to_32_points = 3.5e9, bytes_a_ms_beyond = 3.2e9;
constexpr double fp32_operations_a_ms = 45e9, tf32_operations_a_ms = 120e9;

// The square planes whose inverse has a depthwise product in it: sizes for large kernels on small planes, and tiles.
constexpr int channel_inverse_points[] = {14, 16, 20, 24, 28, 32, 36, 40, 42, 48, 56, 64};

// A block of a fused inverse takes rows x columns of the matrix of planes (fused_product_source.h).
struct FusedInverseShape {
  int points;  // of a side
  int rows, columns, min_blocks;
};
constexpr FusedInverseShape fused_inverse_shapes[] = {
    {8, 4, 8, 8},  {10, 4, 8, 8}, {12, 4, 8, 5}, {14, 4, 8, 4}, {16, 4, 8, 3}, {18, 4, 8, 3}, {20, 4, 8, 2},
    {24, 4, 4, 3}, {28, 4, 4, 2}, {30, 4, 4, 2}, {32, 2, 4, 4}, {36, 2, 4, 3}, {40, 2, 4, 2}, {48, 2, 4, 1},
};

}  // namespace twiddle::small_fft
