#pragma once
#include "framework/cuda/check.h"
#include "framework/device.h"

namespace twiddle::detail {

// Allows a kernel without static shared memory the maximum per block of that GPU. The value is always the maximum: with
// different values, a launch on another thread could lower the limit that this launch has just set.
template <class... Arguments>
void allow_all_shared_memory(void (*kernel)(Arguments...), const Device& gpu) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu.index));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace twiddle::detail
