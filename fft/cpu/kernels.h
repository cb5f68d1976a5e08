#pragma once
#include <cstdint>

namespace twiddle {

// Interface of the vectorised code of each instruction set, as plain values. That code may use instructions that this
// processor does not have. It must therefore not share templates or inline functions of the library with other code.

// One complex transform: steps of small transforms, each over elements `groups` * `spacing` apart.
struct FftStep {
  int radix, groups, spacing;
  const float* roots;  // [group][output 1..radix - 1][re, im]
};
struct FftSteps {
  static constexpr int most = 12;
  int points, count;
  FftStep step[most];
};

// The window of a tile in a block of adjacent planes: element (i, j) of the transform is (top + i, left + j) of a
// plane. Only elements inside the plane and the window are accessed: [row_begin, row_end) x [column_begin, column_end).
struct BlockWindow {
  const float* source;  // the first plane, to read ...
  float* target;        // ... or write
  const float* mask;    // at the same indices: an element is read as zero unless its mask is above zero; null: no mask
  std::int64_t plane_stride;
  int planes, pitch;  // valid planes of the block; floats from row to row
  int top, left;
  int row_begin, row_end, column_begin, column_end;
  int rows_added, columns_added;  // elements before these hold another tile's results: added to, not overwritten
  const float* bias;              // one per plane; null: none
};

// A block of planes, one in each SIMD lane, so that planes never mix.
struct PlaneTransform {
  FftSteps rows, columns;  // half the width, which is even, and height points
  const float* row_roots;  // [i up to a quarter of the width][cos, sin of 2 pi i / width]
  BlockWindow window = {};
  float* spectrum = nullptr;    // the block in the first bin
  std::int64_t bin_stride = 0;  // floats
  float scale = 1;
  bool relu = false;
  float* scratch = nullptr;
};

// A block of planes of few points, transformed by direct sums. The window is one row that holds all elements of a
// plane.
struct FewPoints {
  int rows = 0, columns = 0, height = 0, width = 0;           // of a plane, and of the transform
  const float *row_roots = nullptr, *column_roots = nullptr;  // [bin 0 ... half of them][element][cosine, sine]
  BlockWindow window = {};
  float* spectrum = nullptr;  // the block in the first bin
  std::int64_t bin_stride = 0;
  float scale = 1;
  bool relu = false;
  float* scratch = nullptr;
};

// All tiles of a block of adjacent planes for Winograd's F(outputs x outputs, 3x3). The window covers all tiles; for w,
// which is one tile of 3x3, it is a row of nine.
struct WinogradBlock {
  static constexpr int columns = 16;  // planes of a full block: a cache line of each bin
  BlockWindow window;
  int outputs, size;  // 2 or 4; elements along a tile: outputs + 2 of x, `outputs` of y, 3 of w
  int tiles_h, tiles_w;
  float* spectrum;  // the block in the first bin
  std::int64_t bin_stride, tile_stride;
  bool relu, past_caches;  // past_caches: non-temporal stores to aligned vectors
  float* scratch;
};

// Strides of an operand's matrices in a spectrum: floats from row to row, group to group and bin to bin.
struct BinMatrices {
  std::int64_t row, group, bin;
};

// C = op(A) op(B), or C += op(A) op(B), for all groups of bins [0, bins).
struct BinProducts {
  std::int64_t bins, groups, m, n, k;
  bool transpose_a, conjugate_a, transpose_b, conjugate_b, accumulate;
  bool past_caches;  // C exceeds the caches: non-temporal stores
  const float *a, *b;
  float* c;
  BinMatrices of_a, of_b, of_c;
  float* scratch;
};

// Products of groups with one channel each, for bins [0, bins): matrices of `blocks` blocks of channels and `rows`
// rows, or one row for weights.
struct ChannelProducts {
  std::int64_t bins, rows, blocks;
  bool conjugate_b;  // in multiply_channels
  bool accumulate;   // in sum_channels
  bool past_caches;
  const float *a, *b;
  float* c;
  std::int64_t a_bin, b_bin, c_bin;  // floats from bin to bin
};

// A spectrum has one matrix per bin; bins of one column of the plane are adjacent (see kernels/columns.h). A row of the
// matrix is blocks of `lanes` columns, zero-padded: [re of each][im of each].
struct CpuKernels {
  int lanes;
  std::int64_t (*plane_scratch)(int height, int width);  // floats, of forward and inverse
  void (*forward)(const PlaneTransform& plane);
  void (*forward_past_caches)(const PlaneTransform& plane);
  void (*inverse)(const PlaneTransform& plane);
  std::int64_t (*few_scratch)(const FewPoints& few);
  void (*forward_few)(const FewPoints& few);
  void (*forward_few_past_caches)(const FewPoints& few);
  void (*inverse_few)(const FewPoints& few);
  std::int64_t (*winograd_scratch)(const WinogradBlock& block);  // floats
  void (*forward_winograd)(const WinogradBlock& block);
  void (*inverse_winograd)(const WinogradBlock& block);
  std::int64_t (*product_scratch)();  // floats, of multiply
  void (*multiply)(const BinProducts& products);
  void (*multiply_channels)(const ChannelProducts& products);  // C[row] = A[row] B
  void (*sum_channels)(const ChannelProducts& products);  // C = the sum over rows of conj(A[row]) B[row], or C += it
};

enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };
InstructionSet best_instruction_set();  // of this processor
CpuKernels kernels_for(InstructionSet set);

CpuKernels baseline_kernels();
CpuKernels avx2_kernels();
CpuKernels avx512_kernels();

}  // namespace twiddle
