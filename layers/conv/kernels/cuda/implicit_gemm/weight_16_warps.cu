#include "layers/conv/kernels/cuda/implicit_gemm/weight_kernel.h"

namespace twiddle::implicit_gemm {

void launch_weight_of_16_warps(Stream& stream, const WeightArguments& arguments, const WeightTile& tile, dim3 grid,
                               std::size_t shared) {
  launch_weight<16>(stream, arguments, tile, grid, shared);
}

}  // namespace twiddle::implicit_gemm
