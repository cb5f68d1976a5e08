#include "layers/conv/kernels/cuda/nhwc.h"

#include "framework/cuda/transpose_tiles.h"

namespace twiddle {

namespace {

// For few rows or columns, of which a tile would be mostly empty: adjacent threads write adjacent elements, and share
// the cache lines that they read.
struct TransposeElement {
  std::int64_t rows, columns;
  const float* from;
  float* to;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = i % rows, column = i / rows % columns, matrix = i / rows / columns * rows * columns;
    to[i] = from[matrix + row * columns + column];
  }
};

}  // namespace

void transpose_planes(Stream& stream, std::int64_t count, std::int64_t rows, std::int64_t columns, const float* from,
                      float* to) {
  constexpr int few = 16;
  if (rows < few || columns < few)
    return for_each_index(stream, count * rows * columns, TransposeElement{rows, columns, from, to});
  transpose_tiles<float>(stream, {count, rows, columns, from, columns, to, rows});
}

}  // namespace twiddle
