#include "fft/winograd/winograd_transform.h"

namespace twiddle {

ConvOperand operand_of(const Planes& planes) {
  if (planes.window_h == planes.grid.height) return ConvOperand::x;
  return planes.window_h == planes.grid.step_h ? ConvOperand::y : ConvOperand::w;
}

template <int outputs>
std::vector<FrequencyGrid> WinogradTransform<outputs>::grids(const ConvProblem& problem) const {
  if (problem.kernel_h != 3 || problem.kernel_w != 3 || problem.stride_h != 1 || problem.stride_w != 1 ||
      problem.dilation != 1)
    return {};
  const auto tiles = [](int size) { return (size + outputs - 1) / outputs; };
  return {{outputs + 2, outputs + 2, tiles(problem.out_height()), tiles(problem.out_width()), outputs, outputs}};
}

template <int outputs>
std::size_t WinogradTransform<outputs>::spectrum_bytes(const Planes& planes) const {
  return static_cast<std::size_t>(bins(planes.grid) * planes.matrix_rows() * planes.columns) * sizeof(float);
}

template class WinogradTransform<2>;
template class WinogradTransform<4>;

}  // namespace twiddle
