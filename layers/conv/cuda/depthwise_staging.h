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

  TWIDDLE_HD bool has_fours() const {
    return width % 4 == 0 && mask == nullptr && spread == 1 && !turned &&
           reinterpret_cast<std::uintptr_t>(values) % sizeof(Four) == 0;
  }
};

// Where planes lie in shared memory: rows of `pitch` floats, and `plane` floats from one image to the next.
struct Layout {
  int rows, pitch, plane;
};

// A part of the planes of some images: what lies first is (row, column) of the plane. Zeros where the plane has
// nothing.
struct Part {
  int image, images, channel, row, column;
};

struct OneThread {
  int number, of;
};

// visit(image, row, column) for a thread's share of images x rows x columns: neighbours among threads are neighbours in
// a row. Each step adds the same to the place, so that only the first needs divisions.
template <class Visit>
TWIDDLE_HD void for_each_place(int images, int rows, int columns, const OneThread& thread, const Visit& visit) {
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

// Floats one by one, or four at a time.
template <class Number>
TWIDDLE_HD void stage_as(const Planes& planes, const Part& part, const Layout& layout, const OneThread& thread,
                         float* staged) {
  constexpr int wide = sizeof(Number) / sizeof(float);
  const std::int64_t first = part.image * planes.image + part.channel * planes.channel;
  const int height = planes.height * planes.spread, width = planes.width * planes.spread, halved = planes.spread - 1;
  for_each_place(part.images, layout.rows, layout.pitch / wide, thread, [&](int image, int row, int column) {
    const int y = part.row + row, x = part.column + wide * column;
    const bool inside = y >= 0 && y < height && x >= 0 && x < width && ((y | x) & halved) == 0;
    int place = (y >> halved) * planes.width + (x >> halved);
    if (planes.turned) place = planes.height * planes.width - 1 - place;
    const std::int64_t from = inside ? first + image * planes.image + place : 0;
    float* const to = staged + image * layout.plane + row * layout.pitch + wide * column;
    if (planes.mask == nullptr)
      small_fft::async_copy(reinterpret_cast<Number*>(to), reinterpret_cast<const Number*>(planes.values + from),
                            inside);
    else
      *to = inside && planes.mask[from] > 0 ? planes.values[from] : 0;  // a float: see has_fours
  });
}

TWIDDLE_HD inline void stage(const Planes& planes, const Part& part, const Layout& layout, const OneThread& thread,
                             float* staged) {
  if (planes.has_fours() && part.column % 4 == 0)
    stage_as<Four>(planes, part, layout, thread, staged);
  else
    stage_as<float>(planes, part, layout, thread, staged);
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
