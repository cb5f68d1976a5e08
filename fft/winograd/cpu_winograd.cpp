#include "fft/winograd/cpu_winograd.h"

#include <omp.h>

#include <algorithm>
#include <array>

#include "fft/cpu/cpu_backend.h"
#include "fft/winograd/winograd_form.h"
#include "framework/error.h"

namespace twiddle {

namespace {

// Returns the fields that all blocks of the planes have in common.
template <int outputs>
WinogradBlock common_block(const Planes& planes) {
  WinogradBlock block{};
  block.outputs = outputs, block.size = planes.window_h;
  block.tiles_h = planes.grid.tiles_h, block.tiles_w = planes.grid.tiles_w;
  block.bin_stride = winograd_bin_stride(planes.matrix_rows(), planes.columns);
  block.tile_stride = planes.columns;
  BlockWindow& window = block.window;
  window.plane_stride = planes.column_stride;
  if (block.size == 3) {
    window.row_end = 1, window.column_end = 9;
    return block;
  }
  const auto along = [&](int tiles) { return (tiles - 1) * outputs + block.size; };
  window.pitch = planes.width, window.top = planes.first_h, window.left = planes.first_w;
  window.row_begin = -window.top, window.row_end = std::min(planes.height - window.top, along(block.tiles_h));
  window.column_begin = -window.left, window.column_end = std::min(planes.width - window.left, along(block.tiles_w));
  return block;
}

// Calls `run` for all blocks of planes, in chunks per thread. `set_window(block, floats before the first plane, its
// column)` sets the window's pointers.
template <class SetWindow>
void for_each_block(const Planes& planes, const CpuKernels& kernels, const WinogradBlock& common,
                    const SetWindow& set_window, void (*run)(const WinogradBlock&)) {
  constexpr std::int64_t wide = WinogradBlock::columns;
  const std::int64_t row_blocks = (planes.columns + wide - 1) / wide, blocks = planes.rows * row_blocks;
  const std::int64_t scratch_floats = kernels.winograd_scratch(common);
  const std::int64_t together = std::clamp<std::int64_t>(blocks / (8 * omp_get_max_threads()), 1, 32);
#pragma omp parallel for schedule(dynamic, together)
  for (std::int64_t index = 0; index < blocks; ++index) {
    const std::int64_t row = index / row_blocks, column = index % row_blocks * wide;
    WinogradBlock block = common;
    block.window.planes = static_cast<int>(std::min(wide, planes.columns - column));
    block.spectrum += row * planes.grid.tiles() * planes.columns + column;
    block.scratch += omp_get_thread_num() * scratch_floats;
    set_window(block.window, planes.offset + row * planes.row_stride + column * planes.column_stride, column);
    run(block);
  }
}

// Returns a bin's weight in the sum of all y, by its index along a tile.
template <int outputs>
auto weights_of_sum() {
  using Form = WinogradForm<outputs>;
  std::array<double, Form::points> weights{};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double bins[Form::points] = {};
    bins[i] = 1;
    weights[i] = Form::sum(bins);
  }
  return weights;
}

}  // namespace

std::int64_t winograd_bin_stride(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t line = 16;
  return ((rows * columns + line - 1) / line | 1) * line;
}

template <int outputs>
std::size_t CpuWinograd<outputs>::spectrum_bytes(const Planes& planes) const {
  const std::int64_t bin_stride = winograd_bin_stride(planes.matrix_rows(), planes.columns);
  return static_cast<std::size_t>(this->bins(planes.grid) * bin_stride) * sizeof(float);
}

template <int outputs>
std::size_t CpuWinograd<outputs>::scratch_bytes(const Planes& planes) const {
  return static_cast<std::size_t>(omp_get_max_threads() * kernels_.winograd_scratch(common_block<outputs>(planes))) *
         sizeof(float);
}

template <int outputs>
void CpuWinograd<outputs>::forward(Context& /*ctx*/, const Planes& planes, const PlaneSource& source, void* spectrum,
                                   void* scratch) {
  WinogradBlock common = common_block<outputs>(planes);
  common.spectrum = static_cast<float*>(spectrum), common.scratch = static_cast<float*>(scratch);
  common.past_caches = past_caches(spectrum_bytes(planes)) && planes.columns % WinogradBlock::columns == 0;
  const auto set_window = [&](BlockWindow& window, std::int64_t plane, std::int64_t /*column*/) {
    window.source = source.values + plane;
    window.mask = source.mask ? source.mask + plane : nullptr;
  };
  for_each_block(planes, kernels_, common, set_window, kernels_.forward_winograd);
}

template <int outputs>
void CpuWinograd<outputs>::inverse(Context& /*ctx*/, const Planes& planes, const void* spectrum, float* target,
                                   const PlaneEpilogue& epilogue, void* scratch) {
  WinogradBlock common = common_block<outputs>(planes);
  require(common.size == outputs || (!epilogue.bias && !epilogue.relu),
          "bias and relu are for tiles that do not overlap");
  common.spectrum = const_cast<float*>(static_cast<const float*>(spectrum));  // an inverse only reads it
  common.scratch = static_cast<float*>(scratch), common.relu = epilogue.relu;
  const auto set_window = [&](BlockWindow& window, std::int64_t plane, std::int64_t column) {
    window.target = target + plane;
    window.bias = epilogue.bias ? epilogue.bias + column : nullptr;
  };
  for_each_block(planes, kernels_, common, set_window, kernels_.inverse_winograd);
}

// Sums each bin in double, then computes the sum of all elements from these sums.
template <int outputs>
void CpuWinograd<outputs>::sum_columns(Context& /*ctx*/, const Planes& planes, const void* spectrum, bool add,
                                       float* sums) {
  constexpr std::int64_t wide = WinogradBlock::columns;
  const auto weights = weights_of_sum<outputs>();
  const std::int64_t bin_stride = winograd_bin_stride(planes.matrix_rows(), planes.columns);
#pragma omp parallel for
  for (std::int64_t first = 0; first < planes.columns; first += wide) {
    const std::int64_t count = std::min(wide, planes.columns - first);
    std::array<double, wide> totals{};
    for (std::size_t bin = 0; bin < weights.size() * weights.size(); ++bin) {
      const double weight = weights[bin / weights.size()] * weights[bin % weights.size()];
      if (weight == 0) continue;
      const float* at = static_cast<const float*>(spectrum) + static_cast<std::int64_t>(bin) * bin_stride + first;
      for (std::int64_t row = 0; row < planes.matrix_rows(); ++row, at += planes.columns)
        for (std::int64_t i = 0; i < count; ++i) totals[static_cast<std::size_t>(i)] += weight * double(at[i]);
    }
    for (std::int64_t i = 0; i < count; ++i)
      sums[first + i] = static_cast<float>(totals[static_cast<std::size_t>(i)] + (add ? double(sums[first + i]) : 0));
  }
}

template class CpuWinograd<2>;
template class CpuWinograd<4>;

}  // namespace twiddle
