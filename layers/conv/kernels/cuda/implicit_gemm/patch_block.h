#pragma once
#include <cuda_fp16.h>

#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/pair_products/pair_scales.h"
#include "layers/conv/kernels/cuda/implicit_gemm/patches.h"

// The threads of a block load a patch to shared memory and split its floats in place: each into two fp16 values in one
// word, the high value in the lower half of the word.
namespace twiddle::implicit_gemm {

constexpr int lanes = 32;
constexpr int row_tile = 16, column = 8, step = 16;  // rows, columns and k of a tensor core instruction
constexpr int steps_a_turn = 2;                      // of the weights that come to shared memory together
constexpr int depth_of_turn = steps_a_turn * step;
constexpr int none = -(1 << 20);  // the exponent of zeros

// Zeros beyond the plane. Copies are to be committed.
template <int Threads, class Number>
__device__ void copy_patch_by(const Patches& p, const float* x, const Tile& tile, int thread, float* patch) {
  constexpr int width = sizeof(Number) / sizeof(float);
  const int first_row = thread >> p.row_bits, rows_at_once = Threads >> p.row_bits;
  const std::int64_t area = std::int64_t(p.height) * p.width;
  const float* const image = x + tile.image * p.channels * area + (tile.y + first_row) * p.width + tile.x;
  for (int column = (thread & ((1 << p.row_bits) - 1)) * width; column < p.pitch; column += width << p.row_bits) {
    const bool inside = tile.x + column >= 0 && tile.x + column < p.width;
    for (int channel = 0; channel < p.channels; ++channel) {
      const float* from = image + channel * area + column;
      float* to = patch + channel * p.plane + first_row * p.pitch + column;
      for (int row = first_row; row < p.rows; row += rows_at_once) {
        const bool wanted = inside && static_cast<unsigned>(tile.y + row) < static_cast<unsigned>(p.height);
        small_fft::async_copy(reinterpret_cast<Number*>(to), reinterpret_cast<const Number*>(from), wanted);
        from += rows_at_once * p.width, to += rows_at_once * p.pitch;
      }
    }
  }
}
template <int Threads>
__device__ void copy_patch(const Patches& p, const float* x, const Tile& tile, int thread, float* patch) {
  if (p.by_fours)
    copy_patch_by<Threads, Four>(p, x, tile, thread, patch);
  else
    copy_patch_by<Threads, float>(p, x, tile, thread, patch);
}

__device__ inline int largest_of_warp(int value) {
#if __CUDA_ARCH__ >= 800
  value = __reduce_max_sync(0xffffffffu, value);
#endif
  return value;
}

// The largest magnitude among this thread's floats of a channel. NaN counts as nothing. All threads of a warp go the
// same way.
template <int Threads>
__device__ float largest_of_thread(const Patches& p, const float* plane, int thread) {
  float most = 0;
  for (int first = 0; first < p.plane; first += Threads * 4) {
    const int i = first + thread * 4;
    const Four four = i < p.plane ? *reinterpret_cast<const Four*>(plane + i) : Four{};
#pragma unroll
    for (const float value : four.at) most = fmaxf(most, fabsf(value));
  }
  return most;
}

__device__ inline std::uint32_t bits_of(__half2 pair) {
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
// Returns the lower fp16 values of two words.
__device__ inline std::uint32_t lower_halves(std::uint32_t first, std::uint32_t second) {
  return __byte_perm(first, second, 0x5410);
}
__device__ inline std::uint32_t upper_halves(std::uint32_t first, std::uint32_t second) {
  return __byte_perm(first, second, 0x7632);
}

// Returns a word of a split patch: offsets are in bytes, which saves a multiplication for each.
__device__ inline const char* bytes_from(const float* patch, int byte) {
  return reinterpret_cast<const char*>(patch) + byte;
}
__device__ inline std::uint32_t word_at(const char* bytes, int byte) {
  return *reinterpret_cast<const std::uint32_t*>(bytes + byte);
}
constexpr int word_bytes = 4;

struct SplitTwo {
  std::uint32_t high, low;  // of two floats
};
__device__ inline SplitTwo split_two(float first, float second) {
  const __half2 high = __floats2half2_rn(first, second);
  return {bits_of(high), bits_of(__floats2half2_rn(first - __low2float(high), second - __high2float(high)))};
}

// A channel multiplied by a scale and split, in place.
template <int Threads>
__device__ void split_plane(const Patches& p, float scale, int thread, float* plane) {
#pragma unroll 2
  for (int i = thread * 4; i < p.plane; i += Threads * 4) {
    Four& four = *reinterpret_cast<Four*>(plane + i);
    const SplitTwo a = split_two(four.at[0] * scale, four.at[1] * scale);
    const SplitTwo b = split_two(four.at[2] * scale, four.at[3] * scale);
    *reinterpret_cast<uint4*>(&four) = {lower_halves(a.high, a.low), upper_halves(a.high, a.low),
                                        lower_halves(b.high, b.low), upper_halves(b.high, b.low)};
  }
}

}  // namespace twiddle::implicit_gemm
