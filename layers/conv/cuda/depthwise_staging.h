#pragma once
#include <cstdint>

#include "fft/cuda/device/async_copy.h"
#include "framework/for_each.h"

// How a block of the depthwise kernels brings planes into shared memory.
namespace twiddle::depthwise {

// All planes of one operand, of which a block stages those of one channel.
struct Planes {
  const float *values, *mask = nullptr;  // with a mask, what counts is where that is above zero
  int height, width;
  std::int64_t image, channel;  // floats from one image to the next, and from one channel to the next
  int spread = 1;               // 2: with zeros between rows and columns, as a strided convolution's gradient
  bool turned = false;          // by 180 degrees
};

// Where planes lie in shared memory: rows of `pitch` floats, and `plane` floats from one image to the next.
struct Layout {
  int rows, pitch, plane;
};

// A part of the planes of some images: what lies first is (row, column) of the plane, which may be outside of it.
struct Part {
  int image, images, channel, row, column;
};

struct OneThread {
  int number, of;
};

struct alignas(8) Two {
  float at[2];
};

template <class Number>
constexpr int floats_in = sizeof(Number) / sizeof(float);

// Numbers of that size lie where rows of planes do.
template <class Number>
TWIDDLE_HD bool rows_hold(const float* planes, int width) {
  return width % floats_in<Number> == 0 && reinterpret_cast<std::uintptr_t>(planes) % sizeof(Number) == 0;
}

// visit(image, row, column) for a thread's share of images x rows x columns: neighbours among threads are neighbours in
// a row. Each step adds the same to the place, so that only the first needs divisions.
template <class Visit>
TWIDDLE_HD void for_each_place(int images, int rows, int columns, const OneThread& thread, const Visit& visit) {
  if (rows <= 0 || columns <= 0) return;
  const int more_rows = thread.of / columns, more_columns = thread.of % columns;
  int image = 0, row = thread.number / columns, column = thread.number % columns;
  for (int i = thread.number; i < images * rows * columns; i += thread.of) {
    for (; row >= rows; row -= rows) ++image;
    visit(image, row, column);
    row += more_rows;
    column += more_columns;
    if (column >= columns) {
      column -= columns;
      ++row;
    }
  }
}

// Zeros, where there is padding; a barrier must follow.
TWIDDLE_HD inline void clear(int floats, const OneThread& thread, float* staged) {
  for (int i = thread.number; i < floats / 4; i += thread.of) reinterpret_cast<Four*>(staged)[i] = {};
}

// The elements of an axis of a plane that a part of it holds.
struct Range {
  int begin, end;
};
TWIDDLE_HD inline Range held(int size, int spread, int first, int count) {
  const int begin = first > 0 ? (first + spread - 1) / spread : 0;
  const int end = first + count > 0 ? (first + count + spread - 1) / spread : 0;
  return {begin, end < size ? end : size};
}

// What the part holds of the planes, one number after the other: floats, or some of them at a time.
template <class Number>
TWIDDLE_HD void copy_as(const Planes& planes, const Part& part, const Layout& layout, const OneThread& thread,
                        float* staged) {
  constexpr int wide = floats_in<Number>;
  const Range rows = held(planes.height, planes.spread, part.row, layout.rows);
  const Range columns = held(planes.width, planes.spread, part.column, layout.pitch);
  const std::int64_t first = part.image * planes.image + part.channel * planes.channel;
  const int last = planes.height * planes.width - 1;
  for_each_place(part.images, rows.end - rows.begin, (columns.end - columns.begin) / wide, thread,
                 [&](int image, int row, int column) {
                   const int y = rows.begin + row, x = columns.begin + wide * column, place = y * planes.width + x;
                   const std::int64_t from = first + image * planes.image + (planes.turned ? last - place : place);
                   float* const to = staged + image * layout.plane + (y * planes.spread - part.row) * layout.pitch +
                                     x * planes.spread - part.column;
                   if (wide == 1 && planes.mask != nullptr)
                     *to = planes.mask[from] > 0 ? planes.values[from] : 0;
                   else
                     small_fft::async_copy(reinterpret_cast<Number*>(to),
                                           reinterpret_cast<const Number*>(planes.values + from), true);
                 });
}

// To shared memory that was cleared, or holds another such part.
TWIDDLE_HD inline void stage(const Planes& planes, const Part& part, const Layout& layout, const OneThread& thread,
                             float* staged) {
  const bool as_they_lie = planes.mask == nullptr && planes.spread == 1 && !planes.turned;
  if (as_they_lie && rows_hold<Four>(planes.values, planes.width) && part.column % 4 == 0)
    copy_as<Four>(planes, part, layout, thread, staged);
  else if (as_they_lie && rows_hold<Two>(planes.values, planes.width) && part.column % 2 == 0)
    copy_as<Two>(planes, part, layout, thread, staged);
  else
    copy_as<float>(planes, part, layout, thread, staged);
}

TWIDDLE_HD inline void wait_for_staged() {
  small_fft::commit_group();
  small_fft::wait_group<0>();
}

// `Count` floats from where 16 bytes divide.
template <int Count>
TWIDDLE_HD void load_fours(const float* from, float (&values)[Count]) {
  static_assert(Count % 4 == 0);
#pragma unroll
  for (int i = 0; i < Count; i += 4) {
    const Four four = *reinterpret_cast<const Four*>(from + i);
#pragma unroll
    for (int k = 0; k < 4; ++k) values[i + k] = four.at[k];
  }
}

TWIDDLE_HD constexpr int in_fours(int floats) {
  return (floats + 3) / 4 * 4;
}
TWIDDLE_HD constexpr int in_warps(int threads) {
  return (threads + 31) / 32 * 32;
}

}  // namespace twiddle::depthwise
