#pragma once
#include "framework/convolution.h"
#include "framework/for_each.h"
#include "framework/quotient_up.h"

// The tiling of planes of y, and the patch of x for each tile.
namespace twiddle::tap_shifts {

constexpr int side = 3, taps = side * side;  // of a kernel
constexpr int octet = 8;   // columns of a strip; also channels or filters in one 16-byte vector of fp16
constexpr int strips = 2;  // of a tile
constexpr int tall_strip = 16, short_strip = 14;  // rows

// A tile is two strips of eight columns, side by side or one above the other. Its patch has one row and one column more
// on each side.
struct Tiling {
  int batch, channels, filters, height, width, out_h, out_w, pad_h, pad_w;
  int rows;    // of a strip
  int across;  // strips side by side
  int tiles_across = 0, tiles_down = 0;

  TWIDDLE_HD int tile_columns() const { return octet * across; }
  TWIDDLE_HD int tile_rows() const { return rows * (strips / across); }
  TWIDDLE_HD int positions() const { return octet * rows * strips; }
  TWIDDLE_HD int pitch() const { return tile_columns() + side - 1; }
  TWIDDLE_HD int pixels() const { return pitch() * (tile_rows() + side - 1); }
  TWIDDLE_HD int tiles_an_image() const { return tiles_across * tiles_down; }
  TWIDDLE_HD int tiles() const { return batch * tiles_an_image(); }
  // Where a strip begins, from the tile's first place on.
  TWIDDLE_HD int row_of_strip(int strip) const { return across == 1 ? strip * rows : 0; }
  TWIDDLE_HD int column_of_strip(int strip) const { return across == 1 ? 0 : strip * octet; }
};

// A tile's first place in y. Its patch begins `pad` before that place in x.
struct Origin {
  int image, row, column;
};
TWIDDLE_HD inline Origin origin_of(const Tiling& t, int tile) {
  const int line = tile / t.tiles_across, image = line / t.tiles_down;
  return {image, (line - image * t.tiles_down) * t.tile_rows(), (tile - line * t.tiles_across) * t.tile_columns()};
}

inline Tiling tiling_by(const ConvProblem& c, int rows, int across) {
  Tiling t{.batch = c.batch,
           .channels = c.channels,
           .filters = c.filters,
           .height = c.height,
           .width = c.width,
           .out_h = c.out_height(),
           .out_w = c.out_width(),
           .pad_h = c.pad_h,
           .pad_w = c.pad_w,
           .rows = rows,
           .across = across};
  t.tiles_across = static_cast<int>(quotient_up(t.out_w, t.tile_columns()));
  t.tiles_down = static_cast<int>(quotient_up(t.out_h, t.tile_rows()));
  return t;
}

// About what a pass takes: products of all positions, and sectors of eight floats of x that are read, of which a row
// of a patch touches one more on each side. A sector takes as long as one position's products in fp32, and four in
// tf32: fitted to 64x256x56x56 * 256x256x3x3 on an H100.
inline double cost_of(const Tiling& t, bool pairs) {
  const int sectors = (t.tile_rows() + side - 1) * (t.across + 2);
  return double(t.tiles()) * (t.positions() + sectors * (pairs ? 1 : 4));
}

inline Tiling best_tiling(const ConvProblem& c, bool pairs) {
  Tiling best = tiling_by(c, short_strip, strips);
  for (const int rows : {short_strip, tall_strip})
    for (const int across : {strips, 1}) {
      const Tiling t = tiling_by(c, rows, across);
      if (cost_of(t, pairs) < cost_of(best, pairs)) best = t;
    }
  return best;
}

}  // namespace twiddle::tap_shifts
