#include "fft/cuda/pad_and_crop.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

// A block's threads lie side by side along rows, and step down over the rows of all planes: what is written is side by
// side, and a step costs additions where it would cost divisions.
constexpr int threads = 256, bytes_a_thread = 32;

struct BlockShape {
  int along, down;     // threads along a row, rows at once
  unsigned stretches;  // of a row that is longer than a block
  explicit BlockShape(int places) : stretches(static_cast<unsigned>((places + threads - 1) / threads)) {
    along = (places + static_cast<int>(stretches) - 1) / static_cast<int>(stretches);
    down = std::max(1, threads / along);
  }
};

// The rows of planes that stand one below the other, and how a block steps over them.
struct Rows {
  int planes, height, count;
  Divisor by_height;
  int down, planes_down, rows_down;  // a step, and whole planes and rows of it
  Rows(std::int64_t planes, int height, int step)
      : planes(static_cast<int>(planes)),
        height(height),
        count(static_cast<int>(planes) * height),
        by_height(height),
        down(step),
        planes_down(step / height),
        rows_down(step % height) {}
};

// One of them; behind the last, it is in the last plane.
class RowPlace {
 public:
  TWIDDLE_HD RowPlace(const Rows& rows, int index)
      : rows_(rows),
        index_(index),
        plane_(static_cast<int>(rows.by_height.quotient(index))),
        row_(index - plane_ * rows.height) {}
  TWIDDLE_HD void step() {
    index_ += rows_.down;
    plane_ += rows_.planes_down;
    row_ += rows_.rows_down;
    if (row_ < rows_.height) return;
    row_ -= rows_.height;
    ++plane_;
  }
  TWIDDLE_HD bool exists() const { return index_ < rows_.count; }
  TWIDDLE_HD std::int64_t index() const { return index_; }
  TWIDDLE_HD int plane() const { return plane_ < rows_.planes ? plane_ : rows_.planes - 1; }
  TWIDDLE_HD int row() const { return row_; }

 private:
  const Rows& rows_;
  int index_, plane_, row_;
};

// Places of the planes in the operand's tensor, behind its first one.
struct PlanePlaces {
  Divisor columns;
  int first, width, size;
  std::int64_t gap;  // what other groups have between two rows of planes
  PlanePlaces(const Planes& planes, std::int64_t first_plane)
      : columns(planes.columns),
        first(static_cast<int>(first_plane)),
        width(planes.width),
        size(static_cast<int>(planes.column_stride)),
        gap(planes.row_stride - planes.columns * planes.column_stride) {}
  TWIDDLE_HD std::int64_t of(int plane) const {
    const std::int64_t place = std::int64_t(first + plane) * size;
    return gap == 0 ? place : place + columns.quotient(first + plane) * gap;
  }
  TWIDDLE_HD int column(int plane) const { return static_cast<int>(columns.remainder(first + plane)); }
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

Span rows_of(const Planes& planes) {
  return {planes.height, planes.first_h, planes.window_h, planes.grid.height};
}

Span columns_of(const Planes& planes) {
  return {planes.width, planes.first_w, planes.window_w, planes.grid.width};
}

// Whether each pair of a grid's row, of which the first has an even place, is one of its plane's, too: both are then
// loaded or stored at once. Where the first one is in the plane, both have a place there.
bool in_pairs(const Planes& planes, const float* tensor) {
  const auto even = [](std::int64_t number) { return number % 2 == 0; };
  return even(planes.width) && even(planes.first_w) && even(planes.offset) && even(planes.row_stride) &&
         even(planes.column_stride) && reinterpret_cast<std::uintptr_t>(tensor) % sizeof(float2) == 0;
}

TWIDDLE_HD int within(int index, int size) {
  return index < 0 ? 0 : index < size ? index : size - 1;
}

// What is outside of a plane is loaded from its edge, and replaced only when all is loaded: loads without a condition
// are under way all at once.

// Padded planes are written by pairs of floats, of which each row has a whole number.
struct Pad {
  PlanePlaces places;
  Span rows, columns;
  int height, pairs_in_row;
  const float* source;

  Pad(const Planes& planes, std::int64_t first, const float* from)
      : places(planes, first),
        rows(rows_of(planes)),
        columns(columns_of(planes)),
        height(planes.height),
        pairs_in_row(padded_width(planes.grid) / 2),
        source(from + planes.offset) {}

  template <bool paired>
  TWIDDLE_HD float2 load(const RowPlace& place, int j) const {
    const float* const row =
        source + places.of(place.plane()) + within(place.row() + rows.shift, height) * places.width;
    const int x = j + columns.shift;
    if constexpr (paired) return reinterpret_cast<const float2*>(row)[within(x / 2, places.width / 2)];
    return {row[within(x, places.width)], row[within(x + 1, places.width)]};
  }
};

template <bool paired>
__global__ void __launch_bounds__(threads) pad_kernel(Rows rows, Pad pad, float2* padded) {
  constexpr int steps = bytes_a_thread / sizeof(float2);
  const int pair = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (pair >= pad.pairs_in_row) return;
  const RowPlace first(rows, static_cast<int>(blockIdx.x * steps * blockDim.y + threadIdx.y));
  float2 pairs[steps];
  RowPlace from = first;
#pragma unroll
  for (int step = 0; step < steps; ++step, from.step()) pairs[step] = pad.load<paired>(from, 2 * pair);

  const bool has_x = pad.columns.has(2 * pair), has_y = pad.columns.has(2 * pair + 1);
  RowPlace to = first;
#pragma unroll
  for (int step = 0; step < steps; ++step, to.step()) {
    if (!to.exists()) return;
    const bool has = pad.rows.has(to.row());
    padded[to.index() * pad.pairs_in_row + pair] = {has && has_x ? pairs[step].x : 0, has && has_y ? pairs[step].y : 0};
  }
}

// Planes are written by single floats or by pairs.
struct Crop {
  PlanePlaces places;
  Span rows, columns;
  int padded_row, padded_rows;
  float scale;
  bool relu;
  const float *bias, *padded;
  float* target;

  Crop(const Planes& planes, std::int64_t first, const float* from, float* to, const PlaneEpilogue& epilogue)
      : places(planes, first),
        rows(rows_of(planes)),
        columns(columns_of(planes)),
        padded_row(padded_width(planes.grid)),
        padded_rows(planes.grid.height),
        scale(static_cast<float>(1 / (double(planes.grid.height) * planes.grid.width))),
        relu(epilogue.relu),
        bias(epilogue.bias),
        padded(from),
        target(to + planes.offset) {}

  template <class Floats>
  TWIDDLE_HD Floats load(const RowPlace& place, int x) const {
    constexpr int floats = sizeof(Floats) / sizeof(float);
    const int i = within(place.row() - rows.shift, padded_rows);
    const auto* const row =
        reinterpret_cast<const Floats*>(padded + (std::int64_t(place.plane()) * padded_rows + i) * padded_row);
    return row[within((x - columns.shift) / floats, padded_row / floats)];
  }
  TWIDDLE_HD float bias_of(const RowPlace& place) const {
    return bias == nullptr ? 0 : bias[places.column(place.plane())];
  }
  TWIDDLE_HD float finished(float value, bool has, float its_bias) const {
    value = (has ? scale * value : 0) + its_bias;
    return relu && value < 0 ? 0 : value;
  }
  template <class Floats>
  TWIDDLE_HD void store(const RowPlace& place, int x, const Floats& values, float its_bias) const {
    const bool has_row = rows.has(place.row() - rows.shift);
    const bool has_x = columns.has(x - columns.shift), has_y = columns.has(x + 1 - columns.shift);
    float* const to = target + places.of(place.plane()) + place.row() * places.width + x;
    if constexpr (sizeof(Floats) == sizeof(float))
      *to = finished(values, has_row && has_x, its_bias);
    else
      *reinterpret_cast<float2*>(to) = {finished(values.x, has_row && has_x, its_bias),
                                        finished(values.y, has_row && has_y, its_bias)};
  }
};

template <class Floats>
__global__ void __launch_bounds__(threads) crop_kernel(Rows rows, Crop crop) {
  constexpr int floats = sizeof(Floats) / sizeof(float), steps = bytes_a_thread / sizeof(Floats);
  const int x = floats * static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (x >= crop.places.width) return;
  const RowPlace first(rows, static_cast<int>(blockIdx.x * steps * blockDim.y + threadIdx.y));
  Floats values[steps];
  float biases[steps];
  RowPlace from = first;
#pragma unroll
  for (int step = 0; step < steps; ++step, from.step()) {
    values[step] = crop.load<Floats>(from, x);
    biases[step] = crop.bias_of(from);
  }
  RowPlace to = first;
#pragma unroll
  for (int step = 0; step < steps; ++step, to.step()) {
    if (!to.exists()) return;
    crop.store(to, x, values[step], biases[step]);
  }
}

void require_that_kernels_serve(const Planes& planes, std::int64_t first, std::int64_t count) {
  require(planes.grid.tiles() == 1, "planes are padded whole, and ", to_string(planes.grid), " asks for tiles");
  constexpr std::int64_t most = std::int64_t(1) << 30;  // steps run past the last row
  require((first + count) * std::max(planes.height, planes.grid.height) < most, first + count, " planes of ",
          to_string(planes.grid), " have more rows than are counted; a smaller workspace limit takes fewer at once");
}

}  // namespace

void pad_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* source,
                float* padded) {
  require_that_kernels_serve(planes, first, count);
  if (count == 0) return;
  const Pad pad(planes, first, source);
  const BlockShape shape(pad.pairs_in_row);
  const Rows rows(count, planes.grid.height, shape.down);
  const auto kernel = in_pairs(planes, source) ? pad_kernel<true> : pad_kernel<false>;
  const dim3 blocks(detail::blocks_for(rows.count, rows.down * (bytes_a_thread / static_cast<int>(sizeof(float2)))),
                    shape.stretches),
      block(shape.along, shape.down);
  kernel<<<blocks, block, 0, detail::native(stream)>>>(rows, pad, reinterpret_cast<float2*>(padded));
  detail::check_launch();
}

void crop_planes(Stream& stream, const Planes& planes, std::int64_t first, std::int64_t count, const float* padded,
                 float* target, const PlaneEpilogue& epilogue) {
  require_that_kernels_serve(planes, first, count);
  if (count == 0) return;
  const Crop crop(planes, first, padded, target, epilogue);
  const int floats = in_pairs(planes, target) ? 2 : 1;
  const BlockShape shape(planes.width / floats);
  const Rows rows(count, planes.height, shape.down);
  const auto kernel = floats == 2 ? crop_kernel<float2> : crop_kernel<float>;
  const int steps = bytes_a_thread / (floats * static_cast<int>(sizeof(float)));
  const dim3 blocks(detail::blocks_for(rows.count, rows.down * steps), shape.stretches), block(shape.along, shape.down);
  kernel<<<blocks, block, 0, detail::native(stream)>>>(rows, crop);
  detail::check_launch();
}

}  // namespace twiddle
