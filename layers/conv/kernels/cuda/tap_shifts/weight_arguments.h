#pragma once
#include "framework/device.h"
#include "layers/conv/kernels/cuda/tap_shifts/forward_arguments.h"

// The gradient of w: blocks that have the results of 64 filters and of some channels, and sum over a share of all
// tiles.
namespace twiddle::tap_shifts {

constexpr int filter_octets = block_filters / octet;
constexpr int summing_groups = side, weight_threads = group_threads * (summing_groups + 1);
constexpr int splitting_warps = 4;
constexpr int weight_stages = 2;

// Octets per block: split fp16 keeps the sums and a turn's products in registers, which leaves space for half as many.
TWIDDLE_HD constexpr int channel_octets(bool pairs) {
  return pairs ? 4 : 8;
}

struct WeightArguments {
  Tiling t;  // short strips side by side
  int channel_blocks;
  const float *x, *grad_y;
  float* partial;  // [part][filter][channel][tap]
};

// Offsets in a block's shared memory, in bytes.
struct WeightPlaces {
  int bytes_of_x, bytes_of_stage;
  int factors, exponents, lowest, changed, barriers, all;
  TWIDDLE_HD WeightPlaces(const Tiling& t, bool pairs)
      : bytes_of_x(channel_octets(pairs) * t.pixels() * 16 * (pairs ? 2 : 1)),
        bytes_of_stage(bytes_of_x + filter_octets * t.positions() * 16 * (pairs ? 2 : 1)),
        factors(weight_stages * bytes_of_stage),
        exponents(factors + weight_stages * 2 * block_filters * 4),
        lowest(exponents + 2 * block_filters * 4),
        changed(lowest + 2 * block_filters * 4),
        barriers(changed + weight_stages * splitting_warps * 4),
        all(barriers + 2 * weight_stages * 8) {}
};

// Compiled for sm_90a alone (sm_90a/).
void launch_weight(Stream& stream, const WeightArguments& arguments, bool pairs, dim3 grid);

}  // namespace twiddle::tap_shifts
