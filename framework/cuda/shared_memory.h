#pragma once
#include "framework/cuda/check.h"
#include "framework/device.h"

namespace twiddle::detail {

// Lets a kernel that declares no shared memory of its own take as much as a block can have on that GPU. Always as much:
// where launches asked for what each needs, one of another thread could take back what this one has just been granted.
template <class... Arguments>
void allow_all_shared_memory(void (*kernel)(Arguments...), const Device& gpu) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu.index));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace twiddle::detail
