#pragma once
#include <cstdint>

// wgmma's descriptors of B's panels in shared memory.
namespace twiddle::complex_pairs {

// Describes 64 lines of 128 bytes with the 128-byte swizzle, starting at a multiple of 32 bytes in the first line.
__device__ inline std::uint64_t descriptor(unsigned shared) {
  constexpr std::uint64_t swizzle = std::uint64_t(1) << 62, eight_lines = std::uint64_t(1024 / 16) << 32;
  return swizzle | eight_lines | std::uint64_t(1) << 16 | (shared & 0x3ffff) / 16;
}

}  // namespace twiddle::complex_pairs
