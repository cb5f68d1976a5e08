#pragma once
#include <cstdint>

#include "fft/cuda/device/tensor_core.h"

// Copies from global to shared memory by the multiprocessor's copy engine (the TMA, cp.async.bulk, sm_90 and later),
// which take one instruction of one thread.
namespace twiddle::small_fft {

// In shared memory; tells when a copy has arrived. Copies come one after the other, in phases 0, 1, 0 ...
class CopyBarrier {
 public:
  // By one thread; a barrier of the block must follow.
  __device__ void begin() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&state_)) : "memory");
  }
  // By one thread: so many bytes will come in this phase.
  __device__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state_)), "r"(bytes)
                 : "memory");
  }
  // Some of these, a multiple of 16 at places that 16 divides.
  __device__ void load(void* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(&state_))
                 : "memory");
  }
  // By every thread that reads what was copied.
  __device__ void wait(int phase) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared_address(&state_)),
        "r"(phase)
        : "memory");
  }

 private:
  std::uint64_t state_;
};

}  // namespace twiddle::small_fft
