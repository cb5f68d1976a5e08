#pragma once
#include "fft/cuda/pair_products/pair_scales.h"
#include "framework/device.h"
#include "layers/conv/kernels/cuda/tap_shifts/split.h"

// y = x * w: blocks that multiply tiles of positions by 64 filters.
namespace twiddle::tap_shifts {

constexpr int block_filters = 64;  // rows of a wgmma
constexpr int depth = 16;          // channels of a chunk: k of a wgmma
constexpr int matrix_values = block_filters * depth;
constexpr int multiplying_groups = strips, loading_groups = 2;
constexpr int forward_threads = group_threads * (multiplying_groups + loading_groups);
constexpr int rounds = 3;  // pixels that a loading thread has of a patch
constexpr int most_pixels = rounds * group_threads;
constexpr int most_stages = 8;
constexpr int spare = 10;  // exponents between sums and the largest finite number, for sums of many terms

TWIDDLE_HD constexpr int values_of_chunk(bool pairs) {
  return taps * (pairs ? 2 : 1) * matrix_values;
}

struct ForwardArguments {
  Tiling t;
  int chunks;  // of 16 channels
  int stages;
  bool resident;  // whether weights stay in shared memory; else those of a chunk come with its patch
  const float *x, *bias;
  bool relu;
  const float* scales;    // of channels of x, powers of two
  const float* back;      // of filters: undoes all scales
  const __half* weights;  // [block][chunk][tap][high, low][octet of channels][filter][8]
  float* y;
};

// Offsets in a block's shared memory, in bytes.
struct ForwardPlaces {
  int bytes_of_weights, bytes_of_patch;  // of a chunk
  int patches, scales, scaled, back, bias, tops, back_of_stages, barriers, all;
  TWIDDLE_HD ForwardPlaces(const Tiling& t, int chunks, int stages, bool resident, bool pairs)
      : bytes_of_weights(values_of_chunk(pairs) * 2),
        bytes_of_patch(t.pixels() * depth * 2 * (pairs ? 2 : 1)),
        patches((resident ? chunks : stages) * bytes_of_weights),
        scales(patches + stages * bytes_of_patch),
        scaled(scales + chunks * depth * 4),
        back(scaled + chunks * 4),
        bias(back + block_filters * 4),
        tops(bias + block_filters * 4),
        back_of_stages(tops + loading_groups * 2 * 4 * 4),
        barriers((back_of_stages + most_stages * 4 + 7) / 8 * 8),
        all(barriers + (2 * most_stages + 1) * 8) {}
};

// Compiled for sm_90a alone (sm_90a/).
void launch_forward(Stream& stream, const ForwardArguments& arguments, bool pairs, dim3 grid);

}  // namespace twiddle::tap_shifts
