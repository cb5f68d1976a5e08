#pragma once
#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "layers/conv/kernels/cuda/tap_shifts/weight_arguments.h"

// What the two kinds of warps of weight_kernel.h share.
namespace twiddle::tap_shifts {

// With pairs, half as many sums leave registers to load what comes next while numbers are split.
TWIDDLE_HD constexpr bool loads_ahead(bool pairs) {
  return pairs;
}
constexpr int registers_of_all = 128;  // at the start
TWIDDLE_HD constexpr int registers_of_summing(bool pairs) {
  return pairs ? 112 : 136;
}
TWIDDLE_HD constexpr int registers_of_splitting(bool pairs) {
  return pairs ? 176 : 104;
}
template <int Each>
__device__ void set_registers() {
  if constexpr (Each > registers_of_all)
    small_fft::take_registers<Each>();
  else
    small_fft::give_registers<Each>();
}

// A plane's numbers are multiplied by a power of two that fits a tile. Later tiles use it unless they would overflow or
// their fp16 values would lose bits. If it changes, the sums are rescaled. It exceeds the plane's lowest power by at
// most 2^30: sums of 2^31 products of numbers below 2^15, raised by that twice, stay below 2^121.
constexpr int first_exponent = 102;
constexpr int headroom = 3;  // exponents that numbers may grow by until then
constexpr int most_raised = 30;

struct WeightShared {
  char* stages;
  float* factors;  // [stage][x, y][64]: by how much sums so far are multiplied
  int* exponents;  // [x, y][64]
  int* lowest;     // [x, y][64]: of the exponents so far
  int* changed;    // [stage][warp]: whether any of a warp's factors is not 1
  small_fft::Barrier *is_there, *is_free;
  __device__ WeightShared(char* base, const WeightPlaces& p)
      : stages(base),
        factors(reinterpret_cast<float*>(base + p.factors)),
        exponents(reinterpret_cast<int*>(base + p.exponents)),
        lowest(reinterpret_cast<int*>(base + p.lowest)),
        changed(reinterpret_cast<int*>(base + p.changed)),
        is_there(reinterpret_cast<small_fft::Barrier*>(base + p.barriers)),
        is_free(is_there + weight_stages) {}
};

// Blocks of the same tiles and filters follow each other, so that they find the gradient in the L2 cache.
__device__ inline int channel_block(const WeightArguments& g) {
  return static_cast<int>(blockIdx.x) % g.channel_blocks;
}
__device__ inline int part_of_block(const WeightArguments& g) {
  return static_cast<int>(blockIdx.x) / g.channel_blocks;
}
__device__ inline int parts(const WeightArguments& g) {
  return static_cast<int>(gridDim.x) / g.channel_blocks;
}
__device__ inline int filter_block() {
  return static_cast<int>(blockIdx.y);
}

}  // namespace twiddle::tap_shifts
