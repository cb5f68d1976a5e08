#include "fft/cuda/pad_and_crop.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

// A block takes a stretch of what is written, whatever planes it runs across, so that all stores are side by side.
constexpr int threads = 256, steps = 4, stretch = threads * steps;

// Places of the planes in the operand's tensor.
struct PlanePlaces {
  Divisor columns;
  std::int64_t first, row_stride, column_stride, offset;
  int width;
  PlanePlaces(const Planes& planes, std::int64_t first_plane)
      : columns(planes.columns),
        first(first_plane),
        row_stride(planes.row_stride),
        column_stride(planes.column_stride),
        offset(planes.offset),
        width(planes.width) {}
  TWIDDLE_HD std::int64_t of(std::int64_t plane) const {
    const std::int64_t row = columns.quotient(first + plane), column = first + plane - row * columns.value();
    return offset + row * row_stride + column * column_stride;
  }
  TWIDDLE_HD std::int64_t column(std::int64_t plane) const { return columns.remainder(first + plane); }
};

// Elements begin to begin + count of a grid's rows or columns lie in the plane, the first of them at `begin + shift`.
struct Span {
  int begin, count, shift;
  Span(int plane, int first, int window, int grid) : begin(std::max(0, -first)), count(0), shift(first) {
    count = std::max(0, std::min({window, grid, plane - first}) - begin);
  }
  TWIDDLE_HD bool has(int element) const {
    return static_cast<unsigned>(element - begin) < static_cast<unsigned>(count);
  }
};

// Padded planes are written by pairs of floats, of which each row has a whole number.
struct Pad {
  PlanePlaces places;
  Span rows, columns;
  Divisor pairs_in_row, height, pairs_in_plane;
  const float* source;

  Pad(const Planes& planes, std::int64_t first, const float* from)
      : places(planes, first),
        rows(planes.height, planes.first_h, planes.window_h, planes.grid.height),
        columns(planes.width, planes.first_w, planes.window_w, planes.grid.width),
        pairs_in_row(padded_width(planes.grid) / 2),
        height(planes.grid.height),
        pairs_in_plane(pairs_in_row.value() * height.value()),
        source(from) {}

  // Of the pair `index` places behind the beginning of a plane.
  TWIDDLE_HD float2 operator()(std::int64_t plane, int index) const {
    const int row = static_cast<int>(pairs_in_row.quotient(index)), planes = static_cast<int>(height.quotient(row));
    const int i = row - planes * static_cast<int>(height.value());
    const int j = 2 * (index - row * static_cast<int>(pairs_in_row.value()));
    float2 pair{0, 0};
    if (!rows.has(i)) return pair;
    const float* const from =
        source + places.of(plane + planes) + std::int64_t(i + rows.shift) * places.width + (j + columns.shift);
    if (columns.has(j)) pair.x = from[0];
    if (columns.has(j + 1)) pair.y = from[1];
    return pair;
  }
};

__global__ void __launch_bounds__(threads) pad_kernel(std::int64_t count, Pad pad, float2* padded) {
  const std::int64_t start = std::int64_t(blockIdx.x) * stretch, plane = pad.pairs_in_plane.quotient(start);
  const int begin = static_cast<int>(start - plane * pad.pairs_in_plane.value());
  float2 pairs[steps];
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int behind = step * threads + static_cast<int>(threadIdx.x);
    if (start + behind < count) pairs[step] = pad(plane, begin + behind);
  }
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int behind = step * threads + static_cast<int>(threadIdx.x);
    if (start + behind < count) padded[start + behind] = pairs[step];
  }
}

struct Crop {
  PlanePlaces places;
  Span rows, columns;
  Divisor width, height, plane_size;
  int padded_row, padded_rows;
  float scale;
  bool relu;
  const float *bias, *padded;
  float* target;

  Crop(const Planes& planes, std::int64_t first, const float* from, float* to, const PlaneEpilogue& epilogue)
      : places(planes, first),
        rows(planes.height, planes.first_h, planes.window_h, planes.grid.height),
        columns(planes.width, planes.first_w, planes.window_w, planes.grid.width),
        width(planes.width),
        height(planes.height),
        plane_size(std::int64_t(planes.width) * planes.height),
        padded_row(padded_width(planes.grid)),
        padded_rows(planes.grid.height),
        scale(static_cast<float>(1 / (double(planes.grid.height) * planes.grid.width))),
        relu(epilogue.relu),
        bias(epilogue.bias),
        padded(from),
        target(to) {}

  struct Element {
    float* place;
    float value;
  };
  TWIDDLE_HD Element operator()(std::int64_t plane, int index) const {
    const int row = static_cast<int>(width.quotient(index)), planes = static_cast<int>(height.quotient(row));
    const int y = row - planes * static_cast<int>(height.value()), x = index - row * static_cast<int>(width.value());
    plane += planes;
    const int i = y - rows.shift, j = x - columns.shift;
    float value = 0;
    if (rows.has(i) && columns.has(j)) value = scale * padded[(plane * padded_rows + i) * padded_row + j];
    if (bias != nullptr) value += bias[places.column(plane)];
    if (relu && value < 0) value = 0;
    return {target + places.of(plane) + std::int64_t(y) * places.width + x, value};
  }
};

__global__ void __launch_bounds__(threads) crop_kernel(std::int64_t count, Crop crop) {
  const std::int64_t start = std::int64_t(blockIdx.x) * stretch, plane = crop.plane_size.quotient(start);
  const int begin = static_cast<int>(start - plane * crop.plane_size.value());
  Crop::Element elements[steps];
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int behind = step * threads + static_cast<int>(threadIdx.x);
    if (start + behind < count) elements[step] = crop(plane, begin + behind);
  }
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int behind = step * threads + static_cast<int>(threadIdx.x);
    if (start + behind < count) *elements[step].place = elements[step].value;
  }
}

void require_one_tile(const Planes& planes) {
  require(planes.grid.tiles() == 1, "planes are padded whole, and ", to_string(planes.grid), " asks for tiles");
}

}  // namespace

void pad_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* source,
                float* padded) {
  require_one_tile(planes);
  if (count == 0) return;
  const Pad pad(planes, first, source);
  const std::int64_t pairs = count * pad.pairs_in_plane.value();
  pad_kernel<<<detail::blocks_for(pairs, stretch), threads, 0, detail::native(stream)>>>(
      pairs, pad, reinterpret_cast<float2*>(padded));
  detail::check_launch();
}

void crop_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* padded,
                 float* target, const PlaneEpilogue& epilogue) {
  require_one_tile(planes);
  if (count == 0) return;
  const Crop crop(planes, first, padded, target, epilogue);
  const std::int64_t elements = count * crop.plane_size.value();
  crop_kernel<<<detail::blocks_for(elements, stretch), threads, 0, detail::native(stream)>>>(elements, crop);
  detail::check_launch();
}

}  // namespace twiddle
