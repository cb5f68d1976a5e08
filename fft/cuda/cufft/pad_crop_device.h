#pragma once
#include <algorithm>
#include <cstdint>

#include "fft/cuda/cufft/tuned_on_h200.h"
#include "fft/spectral_transform.h"
#include "framework/for_each.h"

namespace twiddle {

// What one thread does to pad or to crop planes. It keeps one place (an element or a pair of them) and handles this
// place of several planes: the divisions that find row and column are done once, and going to the next plane costs
// additions. All loads of a thread are in flight at once.

template <int count>
struct alignas(count * sizeof(float)) Floats {
  float at[count];
};

// How blocks cover planes: `along` threads for adjacent places of a plane, which may be one of several chunks of a
// plane larger than a block, times `down` planes. Adjacent blocks process adjacent chunks.
struct PlaneBlocks {
  int places, planes;     // places of a plane, number of planes
  int along, down, each;  // each: planes of a block
  Divisor chunks;
  PlaneBlocks(int all_places, std::int64_t all_planes, int steps)
      : places(all_places),
        planes(static_cast<int>(all_planes)),
        along(0),
        down(0),
        each(0),
        chunks((all_places + plane_threads - 1) / plane_threads) {
    along = (places + static_cast<int>(chunks.value()) - 1) / static_cast<int>(chunks.value());
    down = std::max(1, plane_threads / along);
    each = steps * down;
  }
  std::int64_t count() const { return (std::int64_t(planes) + each - 1) / each * chunks.value(); }

  struct Thread {
    int place, plane;  // its first
  };
  TWIDDLE_HD Thread thread(unsigned block, int x, int y) const {
    const std::int64_t group = chunks.quotient(block), chunk = block - group * chunks.value();
    return {static_cast<int>(chunk) * along + x, static_cast<int>(group) * each + y};
  }
  TWIDDLE_HD bool has(const Thread& thread) const { return thread.place < places && thread.plane < planes; }
  TWIDDLE_HD bool has_plane(const Thread& thread, int step) const { return thread.plane + step * down < planes; }
};

// A walk over the planes of an operand from `first` on, planes_step at a time, without a division.
struct PlaneOrder {
  Divisor columns;
  int first, column_count, column_step;
  std::int64_t row_stride, column_stride, step,
      wrap;  // in floats; wrap: added where a step passes the end of a row of planes
  PlaneOrder(const Planes& planes, std::int64_t first_plane, int planes_step)
      : columns(planes.columns),
        first(static_cast<int>(first_plane)),
        column_count(static_cast<int>(planes.columns)),
        column_step(static_cast<int>(planes_step % planes.columns)),
        row_stride(planes.row_stride),
        column_stride(planes.column_stride),
        step(planes_step / planes.columns * row_stride + column_step * column_stride),
        wrap(row_stride - planes.columns * column_stride) {}

  template <class Element>
  struct Walk {
    int column;
    Element* at;
  };
  // `place`: the thread's place in plane 0 of the operand.
  template <class Element>
  TWIDDLE_HD Walk<Element> begin(int plane, Element* place) const {
    const std::int64_t row = columns.quotient(first + plane);
    const int column = first + plane - static_cast<int>(row) * column_count;
    return {column, place + row * row_stride + column * column_stride};
  }
  template <class Element>
  TWIDDLE_HD void next(Walk<Element>& walk) const {
    walk.column += column_step;
    walk.at += step;
    if (walk.column < column_count) return;
    walk.column -= column_count;
    walk.at += wrap;
  }
};

// Elements begin .. begin + count - 1 of a grid's rows or columns lie in the plane, element i at i + shift.
struct GridSpan {
  int begin, count, shift;
  GridSpan(int plane, int first, int window, int grid) : begin(std::max(0, -first)), count(0), shift(first) {
    count = std::max(0, std::min({window, grid, plane - first}) - begin);
  }
  TWIDDLE_HD bool has(int element) const {
    return static_cast<unsigned>(element - begin) < static_cast<unsigned>(count);
  }
};

TWIDDLE_HD inline int clamped(int index, int size) {
  return index < 0 ? 0 : index < size ? index : size - 1;
}

// Real planes as cuFFT transforms them in place, [plane][height][padded_width]: a row has space for width / 2 + 1
// complex bins.
inline int padded_width(const FrequencyGrid& grid) {
  return 2 * (grid.width / 2 + 1);
}

// Whether pairs of adjacent elements can be accessed by 8 bytes: every pair of a grid's row that begins at an even
// element is an aligned pair of its plane, too, and lies in it wholly or not at all.
inline bool in_pairs(const Planes& planes, const float* tensor) {
  const auto even = [](std::int64_t number) { return number % 2 == 0; };
  return even(planes.width) && even(planes.first_w) && even(planes.offset) && even(planes.row_stride) &&
         even(planes.column_stride) && reinterpret_cast<std::uintptr_t>(tensor) % sizeof(Floats<2>) == 0;
}

// Loads have no condition, so that the compiler issues all of them before the first is used. Elements outside of the
// plane are loaded from the plane's edge, those after the last plane from the thread's last plane. They are replaced by
// zeros or left out afterwards.

// Pads: stores pairs, since a padded row is a whole number of them, and loads `loaded` elements at once.
template <int loaded>
struct PadPlanes {
  static constexpr int steps = bytes_a_thread / sizeof(Floats<2>);
  PlaneBlocks blocks;
  PlaneOrder order;
  Divisor pairs_in_row;
  GridSpan rows, columns;
  int height, width;
  const float* source;
  Floats<2>* padded;

  PadPlanes(const Planes& planes, std::int64_t first, std::int64_t count, const float* from, float* to)
      : blocks(planes.grid.height * padded_width(planes.grid) / 2, count, steps),
        order(planes, first, blocks.down),
        pairs_in_row(padded_width(planes.grid) / 2),
        rows(planes.height, planes.first_h, planes.window_h, planes.grid.height),
        columns(planes.width, planes.first_w, planes.window_w, planes.grid.width),
        height(planes.height),
        width(planes.width),
        source(from + planes.offset),
        padded(reinterpret_cast<Floats<2>*>(to)) {}

  TWIDDLE_HD Floats<2> load(const float* row, int x) const {
    if constexpr (loaded == 2)
      return reinterpret_cast<const Floats<2>*>(row)[clamped(x / 2, width / 2)];
    else
      return {row[clamped(x, width)], row[clamped(x + 1, width)]};
  }
  TWIDDLE_HD void operator()(unsigned block, int thread_x, int thread_y) const {
    const auto thread = blocks.thread(block, thread_x, thread_y);
    if (!blocks.has(thread)) return;
    const int i = static_cast<int>(pairs_in_row.quotient(thread.place));
    const int j = 2 * (thread.place - i * static_cast<int>(pairs_in_row.value()));
    Floats<2> pairs[steps];
    auto walk = order.begin(thread.plane, source + std::int64_t(clamped(i + rows.shift, height)) * width);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      pairs[step] = load(walk.at, j + columns.shift);
      if (blocks.has_plane(thread, step + 1)) order.next(walk);
    }
    const bool has = rows.has(i), has_first = has && columns.has(j), has_second = has && columns.has(j + 1);
    Floats<2>* to = padded + std::int64_t(thread.plane) * blocks.places + thread.place;
#pragma unroll
    for (int step = 0; step < steps; ++step, to += std::int64_t(blocks.down) * blocks.places) {
      if (!blocks.has_plane(thread, step)) return;
      *to = {has_first ? pairs[step].at[0] : 0, has_second ? pairs[step].at[1] : 0};
    }
  }
};

// Crops, scales and applies the epilogue: loads and stores `stored` elements at once.
template <int stored>
struct CropPlanes {
  static constexpr int steps = bytes_a_thread / sizeof(Floats<stored>);
  PlaneBlocks blocks;
  PlaneOrder order;
  Divisor places_in_row;
  GridSpan rows, columns;
  int padded_row, padded_rows;
  float scale;
  bool relu;
  const float *bias, *padded;
  float* target;

  CropPlanes(const Planes& planes, std::int64_t first, std::int64_t count, const float* from, float* to,
             const PlaneEpilogue& epilogue)
      : blocks(planes.height * (planes.width / stored), count, steps),
        order(planes, first, blocks.down),
        places_in_row(planes.width / stored),
        rows(planes.height, planes.first_h, planes.window_h, planes.grid.height),
        columns(planes.width, planes.first_w, planes.window_w, planes.grid.width),
        padded_row(padded_width(planes.grid)),
        padded_rows(planes.grid.height),
        scale(static_cast<float>(1 / (double(planes.grid.height) * planes.grid.width))),
        relu(epilogue.relu),
        bias(epilogue.bias),
        padded(from),
        target(to + planes.offset) {}

  TWIDDLE_HD float finished(float value, bool has, float its_bias) const {
    value = (has ? scale * value : 0) + its_bias;
    return relu && value < 0 ? 0 : value;
  }
  TWIDDLE_HD void operator()(unsigned block, int thread_x, int thread_y) const {
    const auto thread = blocks.thread(block, thread_x, thread_y);
    if (!blocks.has(thread)) return;
    const int y = static_cast<int>(places_in_row.quotient(thread.place));
    const int i = y - rows.shift;
    const int j = stored * (thread.place - y * static_cast<int>(places_in_row.value())) - columns.shift;
    const std::int64_t padded_plane = std::int64_t(padded_rows) * padded_row;
    const float* from = padded + thread.plane * padded_plane + clamped(i, padded_rows) * padded_row +
                        clamped(j / stored, padded_row / stored) * stored;
    Floats<stored> values[steps];
    float biases[steps];
    const auto first = order.begin(thread.plane, target + stored * thread.place);
    auto walk = first;
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      values[step] = *reinterpret_cast<const Floats<stored>*>(from);
      biases[step] = bias == nullptr ? 0 : bias[walk.column];
      order.next(walk);
      if (blocks.has_plane(thread, step + 1)) from += blocks.down * padded_plane;
    }
    bool has[stored];
    for (int k = 0; k < stored; ++k) has[k] = rows.has(i) && columns.has(j + k);
    walk = first;
#pragma unroll
    for (int step = 0; step < steps; ++step, order.next(walk)) {
      if (!blocks.has_plane(thread, step)) return;
      Floats<stored> results;
#pragma unroll
      for (int k = 0; k < stored; ++k) results.at[k] = finished(values[step].at[k], has[k], biases[step]);
      *reinterpret_cast<Floats<stored>*>(walk.at) = results;
    }
  }
};

}  // namespace twiddle
