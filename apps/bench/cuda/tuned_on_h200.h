#pragma once
#include <cstdint>
#include <limits>

// All numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90, 132 multiprocessors) with
// CUDA 13.0; docs/results/runs/0078 has the tables. Results do not depend on them. Every GPU uses the
// same block shapes, except those that exceed its shared memory. The numbers of rows and planes scale with the number
// of multiprocessors (batched_fft.cpp). On another GPU some may not be the fastest.
//
// min_blocks: resident blocks per multiprocessor that the register allocation must allow.
namespace twiddle::small_fft {

constexpr std::int64_t any_number = std::numeric_limits<std::int64_t>::max();

// Rows with one thread each (row_fft.h). Up to `most` rows access global memory directly, larger batches go through
// shared memory. For [bin][row], whose accesses are coalesced anyway, the limit is most_by_bin. No threads: there is no
// such kernel.
struct DirectRowsShape {
  int threads;
  std::int64_t most, most_by_bin;
};
struct ThreadRowsShape {
  int threads, per_thread, min_blocks;
};
struct ShortRowShape {
  int points;
  DirectRowsShape direct;
  ThreadRowsShape shared;
};
constexpr ShortRowShape short_row_shapes[] = {
    {2, {256, any_number, any_number}, {}},
    {4, {128, 65536, any_number}, {256, 4, 4}},
    {8, {64, 16384, 65536}, {256, 2, 4}},
    {10, {32, 16384, 16384}, {256, 2, 4}},
    {12, {32, 16384, 16384}, {256, 2, 4}},
    {14, {32, 16384, 16384}, {256, 1, 5}},
    {16, {32, 16384, 16384}, {256, 1, 5}},
    {18, {32, 8192, 8192}, {256, 1, 5}},
    {20, {32, 8192, 8192}, {256, 1, 4}},
    {24, {32, 1024, 1024}, {256, 1, 4}},
    {28, {32, 1024, 1024}, {128, 1, 8}},
    {30, {32, 1024, 1024}, {128, 1, 8}},
    {32, {32, 1024, 1024}, {128, 1, 8}},
    {36, {32, 1024, 1024}, {128, 1, 6}},
    {40, {32, 1024, 1024}, {128, 1, 6}},
    {48, {32, 1024, 1024}, {128, 1, 5}},
    {64, {}, {64, 1, 8}},  // few rows: few_row_shapes
};

// Rows that several threads share: up to `most` rows of points = 2 a1 a2 b by row_fft_few.h ...
struct FewRowsShape {
  int points, a1, a2;
  std::int64_t most, most_by_bin;
};
constexpr FewRowsShape few_row_shapes[] = {
    {64, 4, 4, 8192, 8192},
    {128, 4, 4, 8192, 8192},
    {256, 8, 4, 8192, 2048},
};
// ... and more, of points = 2 a b, by row_fft_many.h.
struct ManyRowsShape {
  int points, a, threads, min_blocks;
};
constexpr ManyRowsShape many_row_shapes[] = {
    {128, 8, 128, 7},
    {256, 16, 256, 3},
};

// The columns of planes in two launches (column_fft.h), points = a b. This is the fastest method for up to `few`
// planes, and the only one for some sizes.
struct ColumnShape {
  int points, a, min_blocks;
  std::int64_t few;
};
constexpr ColumnShape column_shapes[] = {
    {128, 16, 7, 16},
    {256, 16, 4, 0},
};

// One block per plane (shared_plane_fft.h), for up to `most` planes of points x points: rows of points = 2 row_a b,
// columns of points = column_a b.
struct SharedPlaneShape {
  int points, row_a, column_a, threads, min_blocks;
  std::int64_t most;
};
constexpr SharedPlaneShape shared_plane_shapes[] = {
    {32, 4, 8, 96, 8, 256},
    {64, 8, 8, 288, 4, 512},
    {128, 8, 16, 544, 2, any_number},
};

// Planes to [plane][row][bins] through shared memory (plane_major_fft.h), `planes` per block. Up to `few` planes are
// faster with direct global access, few_in_block per block; few 0: none.
struct PlaneMajorShape {
  int height, width, planes, min_blocks;
  std::int64_t few = 0;
  int few_in_block = 1;
};
constexpr PlaneMajorShape plane_major_shapes[] = {
    {2, 2, 128, 8, 16384, 32},
    {4, 4, 64, 8, 16384, 16},
    {8, 8, 8, 16, 2048, 4},
    {10, 10, 32, 8, 2048, 8},
    {12, 12, 16, 10},
    {14, 14, 16, 8},
    {16, 16, 4, 16, 256, 1},
    {18, 18, 16, 6},
    {20, 20, 16, 6},
    {24, 24, 8, 8},
    {28, 28, 8, 5},
    {30, 30, 8, 5},
    {32, 32, 4, 8},
    {36, 36, 8, 3},
    {40, 40, 8, 3},
    {48, 48, 4, 5},
    {64, 64, 4, 2},
    {8, 16, 16, 8},
    {16, 8, 16, 8},
    {8, 32, 8, 6},
    {32, 8, 8, 6},
    {10, 20, 16, 6},
    {20, 10, 16, 6},
    {12, 24, 8, 8},
    {24, 12, 8, 8},
    {14, 28, 8, 5},
    {28, 14, 8, 5},
    {16, 32, 8, 6},
    {32, 16, 8, 6},
    {16, 64, 4, 3},
    {64, 16, 4, 3},
    {18, 36, 8, 4},
    {36, 18, 8, 4},
    {20, 40, 8, 3},
    {40, 20, 8, 3},
    {24, 48, 4, 4},
    {48, 24, 4, 4},
    {32, 64, 4, 3},
    {64, 32, 4, 3},
};

}  // namespace twiddle::small_fft
