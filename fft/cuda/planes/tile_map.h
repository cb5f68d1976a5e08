#pragma once
#include <algorithm>
#include <cstdint>

#include "fft/grid.h"
#include "framework/for_each.h"

namespace twiddle::small_fft {

// Where tiles overlap, those that a launch adds to their planes must not: it takes the tiles of one colour, each
// `height`th and `width`th of them.
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

// Which elements of a tile's rows (or columns) lie in its plane: those from `begin` to before `end`; element i is the
// plane's row first + i.
struct TileSpan {
  int first, begin, end;
  TWIDDLE_HD bool has(int element) const { return element >= begin && element < end; }
};

// One tile of one plane.
struct TilePlace {
  std::int64_t plane;     // floats before the plane
  std::int64_t spectrum;  // which of each bin's numbers is its
  std::int64_t column;    // of the matrix of planes
  int tile_h, tile_w;
  TileSpan rows, columns;
};

// The tiles that one launch takes, counted as their spectra lie: columns of the matrix of planes beside each other,
// then tiles, then rows.
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

  // Of the matrix of planes: all of a tile's place that an epilogue's bias asks for.
  TWIDDLE_HD std::int64_t column(std::int64_t index) const {
    return index - columns_.quotient(index) * columns_.value();
  }
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

  // The rows and columns of a tile that no launch of an earlier colour wrote to: colours are taken in the order of
  // their rows, then of their columns.
  TWIDDLE_HD TileSpan fresh_rows(const TilePlace& place) const {
    return rows_.fresh(place.tile_h, all_tiles_h_, colour_h_, colours_h_);
  }
  TWIDDLE_HD TileSpan fresh_columns(const TilePlace& place) const {
    return elements_.fresh(place.tile_w, all_tiles_w_, colour_w_, colours_w_);
  }

 private:
  static int count_of(int tiles, int colour, int colours) { return (tiles - colour + colours - 1) / colours; }

  // Rows or columns: of tiles, of their windows, and of the plane.
  struct Extent {
    int first, step, window, plane;
    TWIDDLE_HD int most() const { return window < plane ? window : plane; }
    TWIDDLE_HD TileSpan of_tile(int tile) const {
      const int begins = first + tile * step, inside = plane - begins;
      return {begins, begins < 0 ? -begins : 0, inside < window ? inside : window};
    }
    // The tile `apart` places before has a lower colour unless it is in the round before, and that behind only if it is
    // in the next.
    TWIDDLE_HD TileSpan fresh(int tile, int tiles, int colour, int colours) const {
      TileSpan span{0, 0, window};
      for (int apart = 1; apart < colours; ++apart) {
        const int before = window - apart * step, behind = apart * step;
        if (apart <= colour && tile >= apart && before > span.begin) span.begin = before;
        if (apart >= colours - colour && tile + apart < tiles && behind < span.end) span.end = behind;
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
