#pragma once
#include "framework/cuda/check.h"
#include "framework/device.h"

namespace twiddle {

// The calling thread's GPU; the CPU where there is none, as a test makes products there, too.
inline Device current_gpu() {
  Device gpu{Device::Kind::cuda, 0};
  if (cuda_device_count() == 0) return Device{};
  check(cudaGetDevice(&gpu.index));
  return gpu;
}

}  // namespace twiddle
