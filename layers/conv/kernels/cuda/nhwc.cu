#include "layers/conv/kernels/cuda/nhwc.h"

#include "framework/cuda/transpose_tiles.h"

namespace twiddle {

namespace {

// For few rows or columns, of which a tile would be mostly empty: adjacent threads write adjacent elements, and share
// the cache lines that they read.
template <class Element>
struct TransposeElement {
  std::int64_t rows, columns;
  const Element* from;
  Element* to;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = i % rows, column = i / rows % columns, matrix = i / rows / columns * rows * columns;
    to[i] = from[matrix + row * columns + column];
  }
};

template <class Element>
void transpose_as(Stream& stream, std::int64_t count, std::int64_t rows, std::int64_t columns, const void* from,
                  void* to) {
  const auto* const elements = static_cast<const Element*>(from);
  auto* const transposed = static_cast<Element*>(to);
  constexpr int few = 16;
  if (rows < few || columns < few)
    return for_each_index(stream, count * rows * columns,
                          TransposeElement<Element>{rows, columns, elements, transposed});
  transpose_tiles<Element>(stream, {count, rows, columns, elements, columns, transposed, rows});
}

}  // namespace

void transpose_planes(Stream& stream, std::int64_t count, std::int64_t rows, std::int64_t columns, int element_bytes,
                      const void* from, void* to) {
  auto* const transpose = element_bytes == 2 ? &transpose_as<std::uint16_t> : &transpose_as<float>;
  transpose(stream, count, rows, columns, from, to);
}

}  // namespace twiddle
