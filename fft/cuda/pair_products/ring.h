#pragma once
#include "fft/cuda/device/bulk_load.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "fft/cuda/device/wgmma_of_registers.h"

// Common parts of products with separate copying and multiplying warps: two warpgroups multiply, and a third one (of
// which one thread may be enough) copies, several stages of shared memory ahead.
namespace twiddle::pairs {

constexpr int multiplying_warps = 8, multiplying_threads = 32 * multiplying_warps, copying_threads = 128;
constexpr int threads_of_both = multiplying_threads + copying_threads;
constexpr int registers_of_multiplying = 232, registers_of_copying = 40;  // of 168 each at the start

// A stage and the parity of its round.
template <int Stages>
struct Turn {
  int stage = 0, phase = 0;
  __device__ void advance() {
    if (++stage == Stages) stage = 0, phase ^= 1;
  }
};

template <int Stages>
struct Ring {
  small_fft::Barrier is_there[Stages], is_free[Stages];

  // By all threads.
  __device__ void begin(int arrivals, int thread) {
    if (thread < Stages) is_there[thread].begin(arrivals), is_free[thread].begin(multiplying_warps);
    small_fft::show_to_wgmma();  // and to the copy engine
    __syncthreads();
  }
  // By all threads of a warp that has read what it needed.
  __device__ void release(int stage, int lane) {
    small_fft::show_to_wgmma();  // and to the copy engine, which writes there next
    __syncwarp();
    if (lane == 0) is_free[stage].arrive();
  }
};

// products = (Keep ? products : 0) + the products of 16 k, with A's fp16 values in registers; B's low values are
// `to_low` after its high ones. Small terms are added first, as in begin_products.
template <bool Keep, int Count>
__device__ void multiply_split(const small_fft::Fragment& high, const small_fft::Fragment& low, std::uint64_t of_b,
                               int to_low, float (&products)[Count]) {
  small_fft::multiply_by_wgmma<1, Keep>(products, low, of_b);
  small_fft::multiply_by_wgmma<1, true>(products, high, of_b + to_low);
  small_fft::multiply_by_wgmma<1, true>(products, high, of_b);
}

// Keeps the compiler from deferring computations: shared memory is read before it is released.
template <int Count>
__device__ void complete(float (&values)[Count]) {
#pragma unroll
  for (float& value : values) asm volatile("" : "+f"(value)::"memory");
}

}  // namespace twiddle::pairs
