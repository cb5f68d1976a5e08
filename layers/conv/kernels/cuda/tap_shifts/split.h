#pragma once
#include <cuda_fp16.h>

#include <cstdint>

#include "layers/conv/kernels/cuda/tap_shifts/tiling.h"

// Eight floats of a pixel, one per channel, as fp16 vectors.
namespace twiddle::tap_shifts {

constexpr int lanes = 32, group_threads = 128;  // of a warp, and of four that multiply together

struct SplitOctet {
  uint4 high, low;
};

__device__ inline std::uint32_t bits_of(__half2 pair) {
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Without the low values, which the compiler removes if they are unused.
__device__ inline SplitOctet split_octet(const float (&v)[octet]) {
  std::uint32_t high[4], low[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float first = v[2 * i], second = v[2 * i + 1];
    const __half2 pair = __floats2half2_rn(first, second);
    high[i] = bits_of(pair);
    low[i] = bits_of(__floats2half2_rn(first - __low2float(pair), second - __high2float(pair)));
  }
  return {{high[0], high[1], high[2], high[3]}, {low[0], low[1], low[2], low[3]}};
}

// Describes an fp16 matrix in shared memory for wgmma without swizzling. Eight consecutive rows of 16 bytes are a core
// matrix, which is 16-byte aligned. `along_k` and `across_k` are the distances between core matrices in vectors of 16
// bytes (PTX ISA, "Strides", of the matrix descriptor).
__device__ inline std::uint64_t matrix_of_vectors(unsigned address, int along_k, int across_k) {
  return (address & 0x3ffff) >> 4 | std::uint64_t(along_k) << 16 | std::uint64_t(across_k) << 32;
}

// A stage of shared memory and the parity of its round.
struct Turn {
  int stage = 0, phase = 0;
  __device__ void advance(int by, int stages) {
    for (stage += by; stage >= stages; phase ^= 1) stage -= stages;
  }
};

// A barrier of four warps, with a number other than 0, which is the block's barrier.
__device__ inline void group_barrier(int number) {
  asm volatile("bar.sync %0, 128;" ::"r"(number) : "memory");
}

}  // namespace twiddle::tap_shifts
