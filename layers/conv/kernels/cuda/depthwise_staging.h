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

// The bits of all numbers below `count`, nine at most: no block has more threads. Without branches.
TWIDDLE_HD inline int bits_below(int count) {
  constexpr int most_bits = 9;
  int bits = 0;
#pragma unroll
  for (int bit = 0; bit < most_bits; ++bit) bits += count > 1 << bit;
  return bits;
}

// A thread's share of images x rows x columns: which it has first, and how far it is to its next. Neighbours among
// threads are neighbours in a row. A row has a power of two of threads, and so has an image of few rows, so that no
// division is needed.
struct Share {
  int image, row, column, more_images, more_rows, more_columns;
};
TWIDDLE_HD inline Share share_of(int rows, int columns, const OneThread& thread) {
  constexpr int lane_bits = 5;  // a block consists of whole warps
  const int needed = bits_below(columns), column_bits = needed < lane_bits ? needed : lane_bits;
  const int row_bits = bits_below(rows), row = thread.number >> column_bits, rows_at_once = thread.of >> column_bits;
  const int images_at_once = rows_at_once >> row_bits, column = thread.number & ((1 << column_bits) - 1);
  if (images_at_once <= 1) return {0, row, column, 1, rows_at_once, 1 << column_bits};
  const int image = row >> row_bits, none = rows;  // threads of no whole image have none
  const int row_of_image = image < images_at_once ? row & ((1 << row_bits) - 1) : none;
  return {image, row_of_image, column, images_at_once, 1 << row_bits, 1 << column_bits};
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
  const int shift = spread - 1;  // instead of a division
  const int begin = first > 0 ? (first + shift) >> shift : 0;
  const int end = first + count > 0 ? (first + count + shift) >> shift : 0;
  return {begin, end < size ? end : size};
}

// How many floats can be copied at a time: the exponent of two.
TWIDDLE_HD inline int copied_together(const Planes& planes, const Part& part) {
  if (planes.mask != nullptr || planes.spread != 1 || planes.turned) return 0;
  if (rows_hold<Four>(planes.values, planes.width) && part.column % 4 == 0) return 2;
  return rows_hold<Two>(planes.values, planes.width) && part.column % 2 == 0 ? 1 : 0;
}

template <class Number>
TWIDDLE_HD void copy(const float* from, float* to) {
  small_fft::async_copy(reinterpret_cast<Number*>(to), reinterpret_cast<const Number*>(from), true);
}

// What a thread copies of a part: the same of the same part of other images.
struct Copies {
  Share share;
  int rows, columns;  // its part starts before those
  int bits;           // 1 << bits floats at a time
  int from, to;       // where it begins, in the plane and in shared memory
};
TWIDDLE_HD inline Copies copies_of(const Planes& planes, const Part& part, const Layout& layout,
                                   const OneThread& thread) {
  const Range rows = held(planes.height, planes.spread, part.row, layout.rows);
  const Range columns = held(planes.width, planes.spread, part.column, layout.pitch);
  const int bits = copied_together(planes, part), across = (columns.end - columns.begin) >> bits;
  const Share share = share_of(rows.end - rows.begin, across, thread);
  const int y = rows.begin + share.row, x = columns.begin + (share.column << bits), place = y * planes.width + x;
  const int from = planes.turned ? planes.height * planes.width - 1 - place : place;
  const int to = (y * planes.spread - part.row) * layout.pitch + x * planes.spread - part.column;
  return {share, rows.end - rows.begin, across, bits, from, share.image * layout.plane + to};
}

// What the part holds of the planes, to shared memory that was cleared, or holds another such part.
TWIDDLE_HD inline void stage(const Planes& planes, const Part& part, const Layout& layout, const Copies& copies,
                             float* staged) {
  const Share& share = copies.share;
  const int step = planes.turned ? -1 : 1, more_columns = share.more_columns << copies.bits;
  const float* from_column =
      planes.values + (part.image + share.image) * planes.image + part.channel * planes.channel + copies.from;
  float* to_column = staged + copies.to;
  const auto each = [&](const auto& copy_one) {
    for (int column = share.column; column < copies.columns; column += share.more_columns) {
      const float* from_image = from_column;
      float* to_image = to_column;
      for (int image = share.image; image < part.images; image += share.more_images) {
        const float* from = from_image;
        float* to = to_image;
        for (int row = share.row; row < copies.rows; row += share.more_rows) {
          copy_one(from, to);
          from += step * share.more_rows * planes.width;
          to += share.more_rows * planes.spread * layout.pitch;
        }
        from_image += share.more_images * planes.image;
        to_image += share.more_images * layout.plane;
      }
      from_column += step * more_columns;
      to_column += more_columns * planes.spread;
    }
  };
  if (planes.mask != nullptr)
    each([&](const float* from, float* to) { *to = planes.mask[from - planes.values] > 0 ? *from : 0; });
  else if (copies.bits == 2)
    each(copy<Four>);
  else if (copies.bits == 1)
    each(copy<Two>);
  else
    each(copy<float>);
}
TWIDDLE_HD inline void stage(const Planes& planes, const Part& part, const Layout& layout, const OneThread& thread,
                             float* staged) {
  stage(planes, part, layout, copies_of(planes, part, layout, thread), staged);
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
