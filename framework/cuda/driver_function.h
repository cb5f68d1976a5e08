#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

namespace twiddle {

// Returns the driver's function `name` in its version of CUDA 12.0; null if the driver does not have it. It is looked
// up at run time, so that the program starts without a driver.
template <class Function>
Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION < 12050  // before, there was no function that takes a version
  const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result);
#else
  constexpr unsigned since = 12000;
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &result);
#endif
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(function)
                                                                        : nullptr;
}

}  // namespace twiddle
