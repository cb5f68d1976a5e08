#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fft/cpu/cpu_backend.h"
#include "fft/cpu/kernels/columns.h"
#include "framework/error.h"

namespace twiddle {

namespace {

// Returns the window of tile `tile` in a block of `count` planes.
BlockWindow window_of(const Planes& planes, int count, std::int64_t tile) {
  const int s = static_cast<int>(tile / planes.grid.tiles_w), t = static_cast<int>(tile % planes.grid.tiles_w);
  BlockWindow window{};
  window.plane_stride = planes.column_stride;
  window.planes = count;
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

// A block of adjacent planes.
struct Block {
  std::int64_t column;    // of the first plane
  int planes;             // present in the block
  std::int64_t plane;     // floats before the first one in the tensor
  std::int64_t spectrum;  // floats before the block's first tile in a bin; consecutive tiles are `tile_stride` apart
  std::int64_t tile_stride;
};

Block block_at(const Planes& planes, const SpectrumLayout& layout, std::int64_t index) {
  const std::int64_t row = index / layout.blocks, block = index % layout.blocks, column = layout.column(block);
  return {column, layout.columns_in(block), planes.offset + row * planes.row_stride + column * planes.column_stride,
          row * planes.grid.tiles() * layout.row_stride() + block * 2 * layout.lanes, layout.row_stride()};
}

// Calls `work(block, thread)` for all blocks of planes. A thread processes two in a row, since their bins are adjacent.
template <class Work>
void for_each_block(const Planes& planes, int lanes, const Work& work) {
  const SpectrumLayout layout = layout_of(planes, lanes);
  const std::int64_t blocks = planes.rows * layout.blocks;
#pragma omp parallel for schedule(dynamic, 2)
  for (std::int64_t index = 0; index < blocks; ++index) work(block_at(planes, layout, index), omp_get_thread_num());
}

// Runs all tiles of all blocks of planes. One thread processes a block's tiles in order, so that overlapping tiles are
// added in a fixed order. `set_window` sets the window's pointers; each thread has `scratch` floats.
template <class SetWindow, class Run>
void for_each_tile(const Planes& planes, const CpuKernels& kernels, const PlaneTransform& common,
                   std::int64_t scratch_floats, const SetWindow& set_window, const Run& run) {
  for_each_block(planes, kernels.lanes, [&](const Block& block, int thread) {
    PlaneTransform plane = common;
    plane.scratch += thread * scratch_floats;
    plane.spectrum += block.spectrum;
    for (std::int64_t tile = 0; tile < planes.grid.tiles(); ++tile, plane.spectrum += block.tile_stride) {
      plane.window = window_of(planes, block.planes, tile);
      set_window(plane.window, block);
      run(plane, block);
    }
  });
}

// Adapts a kernel that does not depend on the block's position.
auto alone(void (*run)(const PlaneTransform&)) {
  return [run](const PlaneTransform& plane, const Block&) { run(plane); };
}

// Runs blocks of planes of few points.
template <class SetWindow>
void for_each_few(const Planes& planes, const CpuKernels& kernels, const FewPoints& common, const SetWindow& set_window,
                  void (*run)(const FewPoints&)) {
  const std::int64_t scratch_floats = kernels.few_scratch(common);
  for_each_block(planes, kernels.lanes, [&](const Block& block, int thread) {
    FewPoints few = common;
    few.scratch += thread * scratch_floats;
    few.spectrum += block.spectrum;
    few.window.plane_stride = planes.column_stride;
    few.window.planes = block.planes;
    few.window.row_end = 1;
    few.window.column_end = planes.height * planes.width;
    set_window(few.window, block);
    run(few);
  });
}

// Returns whether direct sums take fewer operations than a fast transform, as for weights.
bool of_few_points(const Planes& planes) {
  const bool whole = planes.grid.tiles() == 1 && planes.first_h == 0 && planes.first_w == 0 &&
                     planes.window_h >= planes.height && planes.window_w >= planes.width &&
                     planes.grid.height >= planes.height && planes.grid.width >= planes.width;
  return whole && planes.height + planes.height * planes.width / planes.grid.height <= 15;
}

}  // namespace

double CpuTransform::scale(const FrequencyGrid& grid) {
  return std::exp2(-std::round(std::log2(double(grid.height) * grid.width) / 2));
}

const FftPlan& CpuTransform::plan(int points) {
  return plans_.try_emplace(points, points).first->second;
}

std::int64_t CpuTransform::bins(const FrequencyGrid& grid) const {
  return stored_bins(grid.height, grid.width);
}

std::size_t CpuTransform::spectrum_bytes(const Planes& planes) const {
  return static_cast<std::size_t>(bins(planes.grid) * layout_of(planes, kernels_.lanes).bin_stride) * sizeof(float);
}

std::size_t CpuTransform::scratch_bytes(const Planes& planes) const {
  const FewPoints few{.rows = planes.height, .columns = planes.width, .width = planes.grid.width};
  const std::int64_t floats =
      of_few_points(planes) ? kernels_.few_scratch(few) : kernels_.plane_scratch(planes.grid.height, planes.grid.width);
  return static_cast<std::size_t>(omp_get_max_threads() * floats) * sizeof(float);
}

const std::vector<float>& CpuTransform::row_roots(int points) {
  const auto [place, added] = row_roots_.try_emplace(points);
  if (added) place->second = roots_of_row(points);
  return place->second;
}

const std::vector<float>& CpuTransform::few_roots(int points, int few) {
  const auto [place, added] = few_roots_.try_emplace({points, few});
  if (added) place->second = roots_of_few(points, few);
  return place->second;
}

PlaneTransform CpuTransform::of_planes(const Planes& planes, float* spectrum, void* scratch) {
  const int height = planes.grid.height, width = planes.grid.width;
  require(width % 2 == 0, "a transform of rows of ", width, " points, which must be even");
  return {.rows = plan(width / 2).steps(),
          .columns = plan(height).steps(),
          .row_roots = row_roots(width).data(),
          .spectrum = spectrum,
          .bin_stride = layout_of(planes, kernels_.lanes).bin_stride,
          .scratch = static_cast<float*>(scratch)};
}

FewPoints CpuTransform::few(const Planes& planes, float* spectrum, void* scratch) {
  return {.rows = planes.height,
          .columns = planes.width,
          .height = planes.grid.height,
          .width = planes.grid.width,
          .row_roots = few_roots(planes.grid.width, planes.width).data(),
          .column_roots = few_roots(planes.grid.height, planes.height).data(),
          .spectrum = spectrum,
          .bin_stride = layout_of(planes, kernels_.lanes).bin_stride,
          .scratch = static_cast<float*>(scratch)};
}

void CpuTransform::forward(Context& /*ctx*/, const Planes& planes, const PlaneSource& source, void* spectrum,
                           void* scratch) {
  const auto set_window = [&](BlockWindow& window, const Block& block) {
    window.source = source.values + block.plane;
    window.mask = source.mask ? source.mask + block.plane : nullptr;
  };
  const auto scaled = [&](auto transform) {
    transform.scale = static_cast<float>(scale(planes.grid));
    return transform;
  };
  const bool past = past_caches(spectrum_bytes(planes));
  if (of_few_points(planes))
    for_each_few(planes, kernels_, scaled(few(planes, static_cast<float*>(spectrum), scratch)), set_window,
                 past ? kernels_.forward_few_past_caches : kernels_.forward_few);
  else
    for_each_tile(planes, kernels_, scaled(of_planes(planes, static_cast<float*>(spectrum), scratch)),
                  kernels_.plane_scratch(planes.grid.height, planes.grid.width), set_window,
                  alone(past ? kernels_.forward_past_caches : kernels_.forward));
}

void CpuTransform::sum_columns(Context& /*ctx*/, const Planes& planes, const void* spectrum, bool add, float* sums) {
  const int lanes = kernels_.lanes;
  const SpectrumLayout layout = layout_of(planes, lanes);
  const double scaled = scale(planes.grid);
#pragma omp parallel for
  for (std::int64_t block = 0; block < layout.blocks; ++block) {
    std::array<double, 16> totals{};
    const float* at = static_cast<const float*>(spectrum) + block * 2 * lanes;
    for (std::int64_t row = 0; row < planes.matrix_rows(); ++row, at += layout.row_stride())
      for (int lane = 0; lane < lanes; ++lane) totals[static_cast<std::size_t>(lane)] += double(at[lane]);
    float* const to = sums + layout.column(block);
    for (int lane = 0; lane < layout.columns_in(block); ++lane)
      to[lane] = static_cast<float>(totals[static_cast<std::size_t>(lane)] / scaled + (add ? double(to[lane]) : 0));
  }
}

namespace {

void require_no_epilogue_where_tiles_overlap(const Planes& planes, const PlaneEpilogue& epilogue) {
  const bool overlap = (planes.grid.tiles_h > 1 && planes.window_h > planes.grid.step_h) ||
                       (planes.grid.tiles_w > 1 && planes.window_w > planes.grid.step_w);
  require(!overlap || (!epilogue.bias && !epilogue.relu), "bias and relu are for tiles that do not overlap");
}

auto aim_at(float* target, const PlaneEpilogue& epilogue) {
  return [=](BlockWindow& window, const Block& block) {
    window.target = target + block.plane;
    window.bias = epilogue.bias ? epilogue.bias + block.column : nullptr;
  };
}

// Returns an inverse transform's scale: it undoes the scales of both factors.
float scale_back(const FrequencyGrid& grid) {
  const double factors = CpuTransform::scale(grid) * CpuTransform::scale(grid);
  return static_cast<float>(1 / (factors * grid.height * grid.width));
}

}  // namespace

PlaneTransform CpuTransform::inverse_of_planes(const Planes& planes, const float* spectrum,
                                               const PlaneEpilogue& epilogue, void* scratch) {
  PlaneTransform transform = of_planes(planes, const_cast<float*>(spectrum), scratch);  // an inverse only reads it
  transform.scale = scale_back(planes.grid), transform.relu = epilogue.relu;
  return transform;
}

void CpuTransform::inverse(Context& /*ctx*/, const Planes& planes, const void* spectrum, float* target,
                           const PlaneEpilogue& epilogue, void* scratch) {
  require_no_epilogue_where_tiles_overlap(planes, epilogue);
  const auto* const bins = static_cast<const float*>(spectrum);
  if (!of_few_points(planes)) {
    for_each_tile(planes, kernels_, inverse_of_planes(planes, bins, epilogue, scratch),
                  kernels_.plane_scratch(planes.grid.height, planes.grid.width), aim_at(target, epilogue),
                  alone(kernels_.inverse));
    return;
  }
  FewPoints transform = few(planes, const_cast<float*>(bins), scratch);
  transform.scale = scale_back(planes.grid), transform.relu = epilogue.relu;
  for_each_few(planes, kernels_, transform, aim_at(target, epilogue), kernels_.inverse_few);
}

bool CpuTransform::inverts_products(const Planes& planes) const {
  return !of_few_points(planes);
}

std::size_t CpuTransform::product_scratch_bytes(const Planes& planes) const {
  const std::int64_t product = bins(planes.grid) * 2 * kernels_.lanes;
  return static_cast<std::size_t>(omp_get_max_threads() * product) * sizeof(float) + scratch_bytes(planes);
}

void CpuTransform::inverse_of_products(const Planes& planes, const float* spectrum, const float* kernels,
                                       bool conjugate, float* target, const PlaneEpilogue& epilogue, void* scratch) {
  require_no_epilogue_where_tiles_overlap(planes, epilogue);
  const std::int64_t dense = 2 * kernels_.lanes, count = bins(planes.grid);
  const std::int64_t transform_scratch = kernels_.plane_scratch(planes.grid.height, planes.grid.width);
  const ChannelProducts product{.bins = count,
                                .rows = 1,
                                .blocks = 1,
                                .conjugate_b = conjugate,
                                .accumulate = false,
                                .past_caches = false,
                                .a = nullptr,
                                .b = nullptr,
                                .c = nullptr,
                                .a_bin = layout_of(planes, kernels_.lanes).bin_stride,
                                .b_bin = layout_of(1, planes.columns, kernels_.lanes).bin_stride,
                                .c_bin = dense};
  for_each_tile(planes, kernels_, inverse_of_planes(planes, spectrum, epilogue, scratch),
                transform_scratch + count * dense, aim_at(target, epilogue),
                [&](PlaneTransform plane, const Block& block) {
                  ChannelProducts of_block = product;
                  of_block.a = plane.spectrum, of_block.b = kernels + block.column * 2;
                  of_block.c = plane.spectrum = plane.scratch + transform_scratch;
                  plane.bin_stride = dense;
                  kernels_.multiply_channels(of_block);
                  kernels_.inverse(plane);
                });
}

}  // namespace twiddle
