#include <omp.h>

#include <algorithm>

#include "fft/cpu/cpu_backend.h"
#include "framework/error.h"

namespace twiddle {

namespace {

// Tile `tile` of the block of planes that begins at column `column`.
BlockWindow window_of(const Planes& planes, std::int64_t column, int lanes, std::int64_t tile) {
  const int s = static_cast<int>(tile / planes.grid.tiles_w), t = static_cast<int>(tile % planes.grid.tiles_w);
  BlockWindow window{};
  window.plane_stride = planes.column_stride;
  window.planes = static_cast<int>(std::min<std::int64_t>(lanes, planes.columns - column));
  window.pitch = planes.width;
  window.top = planes.first_h + s * planes.grid.step_h;
  window.left = planes.first_w + t * planes.grid.step_w;
  window.row_begin = std::max(0, -window.top);
  window.row_end = std::min(planes.window_h, planes.height - window.top);
  window.column_begin = std::max(0, -window.left);
  window.column_end = std::min(planes.window_w, planes.width - window.left);
  if (window.column_end <= window.column_begin) window.row_end = window.row_begin;
  if (s > 0) window.rows_added = planes.window_h - planes.grid.step_h;
  if (t > 0) window.columns_added = planes.window_w - planes.grid.step_w;
  return window;
}

// Where one block's tile begins: in the tensor, in the bias, and in a bin of the spectrum.
struct Place {
  std::int64_t plane, column, spectrum;
};

// All tiles of all blocks of planes, two blocks at a time. These belong to one thread, which takes their tiles in
// order: so tiles that overlap are added up one after another. `aim` sets the pointers of one side of a pair.
template <class Aim>
void for_each_pair(const Planes& planes, int lanes, const PairTransform& common, std::int64_t scratch_floats,
                   const Aim& aim, void (*run)(const PairTransform&)) {
  const std::int64_t row_blocks = layout_of(planes.matrix_rows(), planes.columns, lanes).blocks;
  const std::int64_t blocks = planes.rows * row_blocks, tiles = planes.grid.tiles();
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t first = 0; first < blocks; first += 2) {
    PairTransform pair = common;
    pair.scratch += omp_get_thread_num() * scratch_floats;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      for (int side = 0; side < 2 && first + side < blocks; ++side) {
        const std::int64_t block = first + side, row = block / row_blocks, column = block % row_blocks * lanes;
        pair.window[side] = window_of(planes, column, lanes, tile);
        aim(pair, side,
            Place{planes.offset + row * planes.row_stride + column * planes.column_stride, column,
                  ((row * tiles + tile) * row_blocks + block % row_blocks) * 2 * lanes});
      }
      run(pair);
    }
  }
}

}  // namespace

const FftPlan& CpuTransform::plan(int points) {
  return plans_.try_emplace(points, points).first->second;
}

std::size_t CpuTransform::spectrum_bytes(const Planes& planes) const {
  const SpectrumLayout layout = layout_of(planes.matrix_rows(), planes.columns, kernels_.lanes);
  return static_cast<std::size_t>(planes.grid.bins() * layout.bin_stride) * sizeof(float);
}

std::size_t CpuTransform::scratch_bytes(const Planes& planes) const {
  const std::int64_t floats = kernels_.scratch_floats(planes.grid.height, planes.grid.width);
  return static_cast<std::size_t>(omp_get_max_threads() * floats) * sizeof(float);
}

PairTransform CpuTransform::common(const Planes& planes, void* scratch) {
  const FftPlan &rows = plan(planes.grid.width), &columns = plan(planes.grid.height);
  PairTransform pair{};
  pair.rows = rows.steps(), pair.columns = columns.steps();
  pair.bin_stride = layout_of(planes.matrix_rows(), planes.columns, kernels_.lanes).bin_stride;
  pair.scale = 1;
  pair.scratch = static_cast<float*>(scratch);
  return pair;
}

void CpuTransform::forward(Context& /*ctx*/, const Planes& planes, const float* source, void* spectrum, void* scratch) {
  const auto aim = [&](PairTransform& pair, int side, const Place& place) {
    pair.window[side].source = source + place.plane;
    pair.spectrum[side] = static_cast<float*>(spectrum) + place.spectrum;
  };
  for_each_pair(planes, kernels_.lanes, common(planes, scratch),
                kernels_.scratch_floats(planes.grid.height, planes.grid.width), aim,
                past_caches(spectrum_bytes(planes)) ? kernels_.forward_past_caches : kernels_.forward);
}

void CpuTransform::inverse(Context& /*ctx*/, const Planes& planes, const void* spectrum, float* target,
                           const PlaneEpilogue& epilogue, void* scratch) {
  const bool overlap = (planes.grid.tiles_h > 1 && planes.window_h > planes.grid.step_h) ||
                       (planes.grid.tiles_w > 1 && planes.window_w > planes.grid.step_w);
  require(!overlap || (!epilogue.bias && !epilogue.relu), "bias and relu are for tiles that do not overlap");
  PairTransform whole = common(planes, scratch);
  whole.scale = 1 / (static_cast<float>(planes.grid.height) * static_cast<float>(planes.grid.width));
  whole.relu = epilogue.relu;
  const auto aim = [&](PairTransform& pair, int side, const Place& place) {
    pair.window[side].target = target + place.plane;
    pair.window[side].bias = epilogue.bias ? epilogue.bias + place.column : nullptr;
    // Only read here: forward and inverse share the structure.
    pair.spectrum[side] = const_cast<float*>(static_cast<const float*>(spectrum)) + place.spectrum;
  };
  for_each_pair(planes, kernels_.lanes, whole, kernels_.scratch_floats(planes.grid.height, planes.grid.width), aim,
                kernels_.inverse);
}

}  // namespace twiddle
