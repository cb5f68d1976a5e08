#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/vector.h"
#include "fft/winograd/winograd_form.h"

// Winograd's transforms of a block of planes, strip by strip: a strip is a row of tiles. Along each dimension a line of
// elements becomes a line of bins: first down the strip's columns, once for the tiles that share them, then along the
// tiles' rows. The inverse transforms rows first; overlapping tiles are added between the two.
namespace twiddle {
namespace {

// Wraps Floats in a struct: as a template argument, Floats would lose its attributes.
template <int lanes>
struct Number {
  Floats<lanes> value;
};

template <int lanes>
[[gnu::always_inline]] inline Number<lanes> operator+(const Number<lanes>& a, const Number<lanes>& b) {
  return {a.value + b.value};
}

template <int lanes>
[[gnu::always_inline]] inline Number<lanes> operator-(const Number<lanes>& a, const Number<lanes>& b) {
  return {a.value - b.value};
}

template <int lanes>
[[gnu::always_inline]] inline Number<lanes> operator*(float a, const Number<lanes>& b) {
  return {a * b.value};
}

// Columns of all tiles side by side.
inline int strip_columns(const WinogradBlock& block) {
  return (block.tiles_w - 1) * block.outputs + block.size;
}

// For each vector of the block's planes `size` lines of elements and outputs + 2 of half-done bins.
inline std::int64_t winograd_scratch(const WinogradBlock& block) {
  return std::int64_t(block.size + block.outputs + 2) * strip_columns(block) * WinogradBlock::columns;
}

// A vector of a block's planes and its lines in the scratch. Row i of the window is in `line(i)`, which strips reuse.
// Bins transformed along columns only are in `half`.
template <int lanes, class Form, int size>
struct PlaneVector {
  BlockWindow window;
  std::int64_t pitch;
  float *spectrum, *lines, *half;

  float* line(int row) const { return lines + row % size * pitch; }
};

// All vectors of a block.
template <int lanes, class Form, int size>
struct PlaneVectors {
  explicit PlaneVectors(const WinogradBlock& block) : count((block.window.planes + lanes - 1) / lanes) {
    for (int i = 0; i < count; ++i) {
      const int before = i * lanes, left = block.window.planes - before;
      PlaneVector<lanes, Form, size>& one = vectors[i];
      one.window = block.window;
      one.window.planes = left < lanes ? left : lanes;
      const std::int64_t floats = before * block.window.plane_stride;
      if (block.window.source) one.window.source += floats;
      if (block.window.mask) one.window.mask += floats;
      if (block.window.target) one.window.target += floats;
      if (block.window.bias) one.window.bias += before;
      one.pitch = strip_columns(block) * lanes;
      one.spectrum = block.spectrum + before;
      one.lines = block.scratch + i * (size + Form::points) * one.pitch;
      one.half = one.lines + size * one.pitch;
    }
  }
  const PlaneVector<lanes, Form, size>* begin() const { return vectors; }
  const PlaneVector<lanes, Form, size>* end() const { return vectors + count; }

  int count;
  PlaneVector<lanes, Form, size> vectors[WinogradBlock::columns / lanes];
};

template <int lanes, class Form, int size>
void gather_line(const PlaneVector<lanes, Form, size>& planes, int row) {
  const int columns = static_cast<int>(planes.pitch / lanes);
  float* const line = planes.line(row);
  if constexpr (size == 3) {
    if (row == 0) gather_row<lanes>(planes.window, 0, 1, 9, line);  // w: all three lines at once
  } else if (row >= planes.window.row_begin && row < planes.window.row_end) {
    gather_row<lanes>(planes.window, row, 1, columns, line);
  } else {
    for (int j = 0; j < columns; ++j) store<lanes>(line + j * lanes, Floats<lanes>{});
  }
}

template <int lanes, class Form, int size>
void scatter_line(const PlaneVector<lanes, Form, size>& planes, int row, bool relu) {
  if constexpr (size == 3) {
    if (row == 2) scatter_row<lanes>(planes.window, 0, 1, relu, planes.line(0));
  } else if (row >= planes.window.row_begin && row < planes.window.row_end) {
    scatter_row<lanes>(planes.window, row, 1, relu, planes.line(row));
  }
}

// Transforms the columns of the strip whose first line is `top`.
template <int lanes, class Form, int size, auto transform>
[[gnu::flatten]] void forward_columns(const PlaneVector<lanes, Form, size>& planes, int top) {
  const float* lines[size];
  for (int i = 0; i < size; ++i) lines[i] = planes.line(top + i);
  for (std::int64_t at = 0; at < planes.pitch; at += lanes) {
    Number<lanes> elements[size], bins[Form::points];
#pragma GCC unroll 16
    for (int i = 0; i < size; ++i) elements[i].value = load<lanes>(lines[i] + at);
    transform(elements, bins);
#pragma GCC unroll 16
    for (int i = 0; i < Form::points; ++i) store<lanes>(planes.half + i * planes.pitch + at, bins[i].value);
  }
}

// Floats before the first bin of row `row` of a tile.
template <class Form>
std::int64_t tile_row(const WinogradBlock& block, int strip, int tile, int row) {
  return (std::int64_t(strip) * block.tiles_w + tile) * block.tile_stride + row * Form::points * block.bin_stride;
}

// Computes row `row` of a tile's bins.
template <int lanes, class Form, int size, auto transform>
[[gnu::flatten]] void tile_row_bins(const PlaneVector<lanes, Form, size>& planes, int tile, int row,
                                    Number<lanes> (&bins)[Form::points]) {
  Number<lanes> elements[size];
  const float* const half = planes.half + row * planes.pitch + tile * Form::outputs * lanes;
#pragma GCC unroll 16
  for (int i = 0; i < size; ++i) elements[i].value = load<lanes>(half + i * lanes);
  transform(elements, bins);
}

// All vectors of a full block, so that a cache line is stored completely before the next one.
template <int lanes, class Form, int size, auto transform>
[[gnu::flatten]] void stream_tile_row(const PlaneVectors<lanes, Form, size>& vectors, const WinogradBlock& block,
                                      int strip, int tile, int row) {
  constexpr int count = WinogradBlock::columns / lanes;
  Number<lanes> bins[count][Form::points];
#pragma GCC unroll 16
  for (int v = 0; v < count; ++v) tile_row_bins<lanes, Form, size, transform>(vectors.vectors[v], tile, row, bins[v]);
  float* const spectrum = block.spectrum + tile_row<Form>(block, strip, tile, row);
#pragma GCC unroll 16
  for (int i = 0; i < Form::points; ++i)
#pragma GCC unroll 16
    for (int v = 0; v < count; ++v)
      Special<lanes>::stream(spectrum + i * block.bin_stride + v * lanes, bins[v][i].value);
}

template <int lanes, class Form, int size, auto transform>
[[gnu::flatten]] void store_tile_row(const PlaneVector<lanes, Form, size>& planes, const WinogradBlock& block,
                                     int strip, int tile, int row) {
  Number<lanes> bins[Form::points];
  tile_row_bins<lanes, Form, size, transform>(planes, tile, row, bins);
  float* const spectrum = planes.spectrum + tile_row<Form>(block, strip, tile, row);
  if (planes.window.planes == lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < Form::points; ++i) store<lanes>(spectrum + i * block.bin_stride, bins[i].value);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < Form::points; ++i)
      Special<lanes>::store_first(spectrum + i * block.bin_stride, bins[i].value, planes.window.planes);
  }
}

// Stores all vectors of one row of a tile's bins consecutively, so that a cache line is written at once.
template <int lanes, class Form, int size, auto transform>
void forward_block(const WinogradBlock& block) {
  constexpr int shared = size > Form::outputs ? size - Form::outputs : 0;  // lines that two strips have in common
  const PlaneVectors<lanes, Form, size> vectors(block);
  for (int strip = 0; strip < block.tiles_h; ++strip) {
    const int top = strip * Form::outputs;
    for (const auto& planes : vectors) {
      for (int i = strip > 0 ? shared : 0; i < size; ++i) gather_line(planes, top + i);
      forward_columns<lanes, Form, size, transform>(planes, top);
    }
    for (int tile = 0; tile < block.tiles_w; ++tile)
      for (int row = 0; row < Form::points; ++row)
        if (block.past_caches)
          stream_tile_row<lanes, Form, size, transform>(vectors, block, strip, tile, row);
        else
          for (const auto& planes : vectors)
            store_tile_row<lanes, Form, size, transform>(planes, block, strip, tile, row);
  }
  if (block.past_caches) Special<lanes>::finish_streams();
}

// Computes elements of `half` from row `row` of a tile's bins; the first ones are added to the previous tile's results.
template <int lanes, class Form, int size, auto transform>
[[gnu::flatten]] void inverse_tile_row(const PlaneVector<lanes, Form, size>& planes, const WinogradBlock& block,
                                       int strip, int tile, int row) {
  Number<lanes> bins[Form::points], elements[size];
  const float* const spectrum = planes.spectrum + tile_row<Form>(block, strip, tile, row);
  if (planes.window.planes == lanes) {
#pragma GCC unroll 16
    for (int i = 0; i < Form::points; ++i) bins[i].value = load<lanes>(spectrum + i * block.bin_stride);
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < Form::points; ++i)
      bins[i].value = Special<lanes>::load_first(spectrum + i * block.bin_stride, planes.window.planes);
  }
  transform(bins, elements);
  float* const half = planes.half + row * planes.pitch + tile * Form::outputs * lanes;
#pragma GCC unroll 16
  for (int i = 0; i < size; ++i) {
    if (tile > 0 && i < size - Form::outputs) elements[i].value += load<lanes>(half + i * lanes);
    store<lanes>(half + i * lanes, elements[i].value);
  }
}

// Transforms columns; the first lines are added to the previous strip's results.
template <int lanes, class Form, int size, auto transform>
[[gnu::flatten]] void inverse_columns(const PlaneVector<lanes, Form, size>& planes, int strip) {
  float* lines[size];
  for (int i = 0; i < size; ++i) lines[i] = planes.line(strip * Form::outputs + i);
  for (std::int64_t at = 0; at < planes.pitch; at += lanes) {
    Number<lanes> bins[Form::points], elements[size];
#pragma GCC unroll 16
    for (int i = 0; i < Form::points; ++i) bins[i].value = load<lanes>(planes.half + i * planes.pitch + at);
    transform(bins, elements);
#pragma GCC unroll 16
    for (int i = 0; i < size; ++i) {
      if (strip > 0 && i < size - Form::outputs) elements[i].value += load<lanes>(lines[i] + at);
      store<lanes>(lines[i] + at, elements[i].value);
    }
  }
}

// Rows of a tile's bins are far apart in memory: the rows of the next tile, or of w's next block, are prefetched.
template <int lanes, class Form, int size, auto transform>
void inverse_block(const WinogradBlock& block) {
  const PlaneVectors<lanes, Form, size> vectors(block);
  const std::int64_t following = size == 3 ? WinogradBlock::columns : block.tile_stride;
  for (int strip = 0; strip < block.tiles_h; ++strip) {
    for (int tile = 0; tile < block.tiles_w; ++tile)
      for (int row = 0; row < Form::points; ++row) {
        const float* const next = block.spectrum + tile_row<Form>(block, strip, tile, row) + following;
#pragma GCC unroll 16
        for (int i = 0; i < Form::points; ++i) __builtin_prefetch(next + i * block.bin_stride);
        for (const auto& planes : vectors)
          inverse_tile_row<lanes, Form, size, transform>(planes, block, strip, tile, row);
      }
    // The lines to which no later strip adds.
    const int top = strip * Form::outputs, done = strip + 1 == block.tiles_h ? size : Form::outputs;
    for (const auto& planes : vectors) {
      inverse_columns<lanes, Form, size, transform>(planes, strip);
      for (int i = 0; i < done; ++i) scatter_line(planes, top + i, block.relu);
    }
  }
}

template <int lanes, class Form>
void forward_form(const WinogradBlock& block) {
  using V = Number<lanes>;
  switch (block.size) {
    case Form::points:
      return forward_block<lanes, Form, Form::points, Form::template input<V>>(block);
    case Form::outputs:
      return forward_block<lanes, Form, Form::outputs, Form::template output_transposed<V>>(block);
    default:
      return forward_block<lanes, Form, 3, Form::template filter<V>>(block);
  }
}

template <int lanes, class Form>
void inverse_form(const WinogradBlock& block) {
  using V = Number<lanes>;
  switch (block.size) {
    case Form::points:
      return inverse_block<lanes, Form, Form::points, Form::template input_transposed<V>>(block);
    case Form::outputs:
      return inverse_block<lanes, Form, Form::outputs, Form::template output<V>>(block);
    default:
      return inverse_block<lanes, Form, 3, Form::template filter_transposed<V>>(block);
  }
}

template <int lanes>
void forward_winograd(const WinogradBlock& block) {
  return block.outputs == 2 ? forward_form<lanes, WinogradForm<2>>(block) : forward_form<lanes, WinogradForm<4>>(block);
}

template <int lanes>
void inverse_winograd(const WinogradBlock& block) {
  return block.outputs == 2 ? inverse_form<lanes, WinogradForm<2>>(block) : inverse_form<lanes, WinogradForm<4>>(block);
}

}  // namespace
}  // namespace twiddle
