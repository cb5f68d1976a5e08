#pragma once
#include "fft/cuda/device/tensor_core.h"
#include "fft/cuda/tensor_core/panel.h"

namespace twiddle::tensor_core {

using small_fft::Fragment;

// 16 lines and 16 k of a plane of A, for mma and wgmma.
template <class P>
__device__ Fragment load_fragment(unsigned panel, int plane, int first_line, int first_k, int lane) {
  Fragment to;
  const unsigned row = panel + P::fragment_row(plane, first_line, first_k, lane);
  if constexpr (P::k_major)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
                 : "r"(row)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to.at[0]), "=r"(to.at[1]), "=r"(to.at[2]), "=r"(to.at[3])
                 : "r"(row)
                 : "memory");
  return to;
}

}  // namespace twiddle::tensor_core
