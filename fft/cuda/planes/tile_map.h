#pragma once
#include <algorithm>
#include <cstdint>

#include "fft/grid.h"
#include "framework/for_each.h"

namespace twiddle::small_fft {

// Tiles that are accumulated in their planes overlap (overlap-add), and two blocks of one launch must not accumulate to
// the same elements. Tiles are therefore colored, as in graph coloring: every `height`th one down and every `width`th
// one across has the same color, and tiles of one color do not overlap. Each color is a separate launch, which also
// fixes the order of the sums.
struct Colours {
  int height = 1, width = 1;
  Colours() = default;
  explicit Colours(const Planes& planes)
      : height(of(planes.grid.tiles_h, planes.window_h, planes.grid.step_h)),
        width(of(planes.grid.tiles_w, planes.window_w, planes.grid.step_w)) {}

 private:
  static int of(int tiles, int window, int step) {
    return tiles == 1 ? 1 : std::min(tiles, (window + step - 1) / step);
  }
};

// Which of a tile's rows (or columns) lie in its plane: rows begin .. end - 1, the others are padding or cropped. Row i
// of the tile is row first + i of the plane.
struct TileSpan {
  int first, begin, end;
  TWIDDLE_HD bool has(int element) const { return element >= begin && element < end; }
};

// One tile of one plane.
struct TilePlace {
  std::int64_t plane;     // offset of its plane in the tensor, in floats
  std::int64_t spectrum;  // its index among the numbers of a bin
  std::int64_t column;    // its plane's column in the matrix of planes
  int tile_h, tile_w;
  TileSpan rows, columns;
};

// The tiles of one launch: from a tile's index to its place. Indices are in the order of the spectrum, [row of the
// matrix of planes][tile][column], so that a block of consecutive tiles has adjacent numbers in each bin. If there is
// one colour, a tile's index is its index in the spectrum.
class TileMap {
 public:
  explicit TileMap(const Planes& planes, int colour_h = 0, int colour_w = 0, Colours colours = {})
      : columns_(planes.columns),
        tiles_w_(count_of(planes.grid.tiles_w, colour_w, colours.width)),
        tiles_(tiles_w_.value() * count_of(planes.grid.tiles_h, colour_h, colours.height)),
        count_(planes.rows * tiles_.value() * planes.columns),
        row_stride_(planes.row_stride),
        column_stride_(planes.column_stride),
        offset_(planes.offset),
        all_tiles_h_(planes.grid.tiles_h),
        all_tiles_w_(planes.grid.tiles_w),
        colour_h_(colour_h),
        colour_w_(colour_w),
        colours_h_(colours.height),
        colours_w_(colours.width),
        rows_{planes.first_h, planes.grid.step_h, std::min(planes.window_h, planes.grid.height), planes.height},
        elements_{planes.first_w, planes.grid.step_w, std::min(planes.window_w, planes.grid.width), planes.width} {}

  TWIDDLE_HD std::int64_t count() const { return count_; }
  TWIDDLE_HD int plane_width() const { return elements_.plane; }
  // The most rows and columns of a tile that lie in a plane.
  TWIDDLE_HD int most_rows() const { return rows_.most(); }
  TWIDDLE_HD int most_columns() const { return elements_.most(); }

  // A tile's column in the matrix of planes: which bias it has. Cheaper than its whole place.
  TWIDDLE_HD std::int64_t column(std::int64_t index) const {
    return index - columns_.quotient(index) * columns_.value();
  }
  TWIDDLE_HD std::int64_t matrix_row(std::int64_t index) const { return columns_.quotient(index); }
  TWIDDLE_HD TilePlace operator()(std::int64_t index) const {
    const std::int64_t matrix_row = columns_.quotient(index), column = index - matrix_row * columns_.value();
    const std::int64_t row = tiles_.quotient(matrix_row);
    const auto tile = static_cast<int>(matrix_row - row * tiles_.value());
    const auto tile_row = static_cast<int>(tiles_w_.quotient(tile));
    TilePlace place;
    place.tile_h = colour_h_ + colours_h_ * tile_row;
    place.tile_w = colour_w_ + colours_w_ * (tile - tile_row * static_cast<int>(tiles_w_.value()));
    place.plane = offset_ + row * row_stride_ + column * column_stride_;
    place.spectrum = ((row * all_tiles_h_ + place.tile_h) * all_tiles_w_ + place.tile_w) * columns_.value() + column;
    place.column = column;
    place.rows = rows_.of_tile(place.tile_h);
    place.columns = elements_.of_tile(place.tile_w);
    return place;
  }

  // The rows and columns of a tile that no earlier colour has written: memory is undefined there, so that they are
  // written and not accumulated. Colours are launched in the order of colour_h, then of colour_w.
  TWIDDLE_HD TileSpan fresh_rows(const TilePlace& place) const {
    return rows_.fresh(place.tile_h, all_tiles_h_, colour_h_, colours_h_);
  }
  TWIDDLE_HD TileSpan fresh_columns(const TilePlace& place) const {
    return elements_.fresh(place.tile_w, all_tiles_w_, colour_w_, colours_w_);
  }

 private:
  static int count_of(int tiles, int colour, int colours) { return (tiles - colour + colours - 1) / colours; }

  // One dimension: where the first tile begins, the step between tiles, the window that is valid, the plane's size.
  struct Extent {
    int first, step, window, plane;
    TWIDDLE_HD int most() const { return window < plane ? window : plane; }
    TWIDDLE_HD TileSpan of_tile(int tile) const {
      const int begins = first + tile * step, inside = plane - begins;
      return {begins, begins < 0 ? -begins : 0, inside < window ? inside : window};
    }
    // The tile `apart` before this one has an earlier colour if colour - apart does not wrap around below 0; the tile
    // `apart` after it has an earlier one if colour + apart does wrap around.
    TWIDDLE_HD TileSpan fresh(int tile, int tiles, int colour, int colours) const {
      TileSpan span{0, 0, window};
      for (int apart = 1; apart < colours; ++apart) {
        const int before = window - apart * step, after = apart * step;
        if (apart <= colour && tile >= apart && before > span.begin) span.begin = before;
        if (apart >= colours - colour && tile + apart < tiles && after < span.end) span.end = after;
      }
      return span;
    }
  };

  Divisor columns_, tiles_w_, tiles_;
  std::int64_t count_, row_stride_, column_stride_, offset_;
  int all_tiles_h_, all_tiles_w_, colour_h_, colour_w_, colours_h_, colours_w_;
  Extent rows_, elements_;
};

}  // namespace twiddle::small_fft
