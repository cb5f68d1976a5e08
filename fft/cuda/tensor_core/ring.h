#pragma once
#include "fft/cuda/device/bulk_load.h"

namespace twiddle::tensor_core {

using small_fft::Barrier;

// A stage of a ring, and the parity of its round.
template <int Stages>
struct Turn {
  int stage = 0, phase = 0;
  __device__ void advance() {
    if (++stage == Stages) stage = 0, phase ^= 1;
  }
};

}  // namespace twiddle::tensor_core
