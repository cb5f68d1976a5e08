#pragma once
#include <cstdint>

#include "fft/cuda/device/tensor_core.h"

// Copies from global to shared memory by the multiprocessor's copy engine (the TMA, cp.async.bulk, sm_90 and later),
// issued by one instruction of one thread, and the barriers that signal their arrival (PTX ISA, "mbarrier").
namespace twiddle::small_fft {

// A barrier in shared memory. Its phases, 0, 1, 0 ..., complete after `arrivals` arrivals and when all expected bytes
// have arrived.
class Barrier {
 public:
  // By one thread; a barrier of the block must follow.
  __device__ void begin(int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&state_)), "r"(arrivals) : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state_)) : "memory");
  }
  // Arrives, and announces this number of bytes for this phase.
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
  // The thread arrives when all its async_copy before this have come.
  __device__ void arrive_when_copied() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&state_)) : "memory");
  }
  // By every thread that reads what was copied, until the phase is over; of a barrier that has just begun, phase 1
  // counts as over.
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
