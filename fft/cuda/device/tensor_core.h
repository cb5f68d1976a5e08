#pragma once
#include <cuda_fp16.h>

#include <cstdint>

// Products of fp16 matrices by tensor cores, with sums in fp32.
//
// A matrix in shared memory has rows of 32 k, which are 64 bytes. Eight rows (512 bytes, 512-byte aligned) are a
// swizzled atom of the hardware. A row has four pieces of eight fp16 values; piece i has index i ^ (row / 2 % 4), so
// that eight rows' pieces of the same k are in different banks ("64-byte swizzle" in the PTX manual, "Shared memory
// matrix layout").
namespace twiddle::small_fft {

constexpr int fp16_per_row = 32;

__host__ __device__ constexpr int place_of_piece(int row, int piece) {
  return row * fp16_per_row + ((piece ^ ((row >> 1) & 3)) << 3);
}

__device__ inline unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// Products of a warp (mma.sync, sm_80 and later).

// Four matrices of eight rows and eight k: of A a tile of 16 rows and 16 k, of B one of 8 columns and 32 k.
struct Fragment {
  std::uint32_t at[4];
};

// Thread i has the address of row i % 8 of matrix i / 8.
__device__ inline Fragment load_fragment(const __half* row) {
  Fragment to = {};
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
               : "r"(shared_address(row))
               : "memory");
#endif
  return to;
}

// c += a b, of 16 rows, 8 columns and 16 k. Thread t has of c the columns 2 (t % 4) and the next, of row t / 4 in c[0]
// and c[1], and of the row 8 below in c[2] and c[3].
__device__ inline void multiply(const Fragment& a, std::uint32_t b_first, std::uint32_t b_second, float* c) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b_first), "r"(b_second));
#endif
}

// Products of four warps (wgmma, sm_90a alone, for which files that use it are compiled): they read both factors in
// shared memory by themselves, while the threads do other work.

// What this thread has written to shared memory becomes visible to wgmma after the next barrier.
__device__ inline void show_to_wgmma() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A matrix of whole atoms, at its first k or another multiple of 16.
__device__ inline std::uint64_t matrix_for_wgmma(const __half* matrix) {
  constexpr std::uint64_t atom_bytes = 512, swizzle_of_64_bytes = 2;
  const std::uint64_t address = shared_address(matrix);
  return (address & 0x3ffff) >> 4 | std::uint64_t(1) << 16 | (atom_bytes >> 4) << 32 | swizzle_of_64_bytes << 62;
}

// Returns the increment of a descriptor for an offset of `count` fp16 values.
__host__ __device__ constexpr int steps_for_wgmma(int count) {
  return count * 2 / 16;
}

__device__ inline void begin_wgmma() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void commit_wgmma() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most the latest `InFlight` committed groups are still being multiplied.
template <int InFlight = 0>
__device__ inline void wait_for_wgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(InFlight) : "memory");
}

// c = (add ? c : 0) + a b, of 64 rows, 64 columns and 16 k. Warp w of the four has rows 16 w to 16 w + 15, and of each
// eight columns what multiply() has: c[4 j] to c[4 j + 3] of columns 8 j to 8 j + 7.
__device__ inline void multiply_by_wgmma(std::uint64_t a, std::uint64_t b, bool add, float (&c)[32]) {
  asm volatile(
      "{ .reg .pred add; setp.ne.b32 add, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, add, 1, 1, 0, 0; }"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]),
        "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]),
        "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
        "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
      : "l"(a), "l"(b), "r"(static_cast<int>(add)));
}

}  // namespace twiddle::small_fft
