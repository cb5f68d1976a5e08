#include "layers/conv/kernels/cuda/implicit_gemm/forward_kernel.h"

namespace twiddle::implicit_gemm {

void launch_forward_by_wgmma(Stream& stream, const ForwardArguments& arguments, int columns, bool pairs, dim3 grid,
                             std::size_t shared) {
  launch_forward<true>(stream, arguments, columns, pairs, grid, shared);
}

}  // namespace twiddle::implicit_gemm
