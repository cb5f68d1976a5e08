#pragma once
#include <algorithm>

#include "framework/convolution.h"
#include "framework/for_each.h"
#include "framework/quotient_up.h"

// The tiling of output planes, and the patch of x for each tile.
namespace twiddle::implicit_gemm {

// A plane of y is divided into panels of adjacent columns. The positions of a panel are numbered row by row; a tile is
// a run of consecutive positions. Its patch is the rectangle of x that its kernels read, in all channels.
struct Patches {
  int channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation, out_h, out_w;
  int tile;                // positions
  int panel, panels;       // columns of a panel, and how many there are in a plane
  int tiles_a_panel;       // rounded up
  int rows, pitch, plane;  // of a patch: rows, floats from one to the next, and from one channel to the next
  bool by_fours;           // whether rows of x consist of whole fours, which begin where those of a patch do
  int row_bits;            // 2^row_bits threads copy a row
  Divisor by_panel, by_tiles_a_panel, by_panels;

  TWIDDLE_HD int taps() const { return channels * kernel_h * kernel_w; }
  TWIDDLE_HD int tiles_an_image() const { return panels * tiles_a_panel; }
  TWIDDLE_HD int floats() const { return channels * plane; }
  TWIDDLE_HD int places() const { return out_h * out_w; }
};

// Where a tile lies: its image, its first position in its panel, that position's row and the panel's first column; and
// which number of x its patch begins with, some columns before those that are seen.
struct Tile {
  int image, first, first_row, first_column, x, y, unseen;
};
TWIDDLE_HD inline Tile tile_of(const Patches& p, int index) {
  const int panel = static_cast<int>(p.by_tiles_a_panel.quotient(index));
  const int image = static_cast<int>(p.by_panels.quotient(panel));
  const int first = (index - panel * p.tiles_a_panel) * p.tile, row = static_cast<int>(p.by_panel.quotient(first));
  const int column = (panel - image * p.panels) * p.panel, seen = column * p.stride_w - p.pad_w;
  const int unseen = p.by_fours ? seen & 3 : 0;
  return {image, first, row, column, seen - unseen, row * p.stride_h - p.pad_h, unseen};
}

// A position of a tile: where its window begins in the patch, and where its result lies in a plane of y; -1: nowhere.
// The window of a position beyond the plane is another one of the patch.
struct Position {
  int window, place;
};
TWIDDLE_HD inline Position position_of(const Patches& p, const Tile& tile, int index) {
  const int at = tile.first + index, row = static_cast<int>(p.by_panel.quotient(at)), column = at - row * p.panel;
  if (row >= p.out_h) return {0, -1};
  const int window = (row - tile.first_row) * p.stride_h * p.pitch + column * p.stride_w + tile.unseen;
  const int out_column = tile.first_column + column;
  return {window, out_column < p.out_w ? row * p.out_w + out_column : -1};
}

// Where a tap (channel, kernel row, kernel column) lies in the patch, from the beginning of a window on.
TWIDDLE_HD inline int offset_of_tap(const Patches& p, int tap) {
  const int row = tap / p.kernel_w, channel = row / p.kernel_h;
  return channel * p.plane + ((row - channel * p.kernel_h) * p.pitch + tap - row * p.kernel_w) * p.dilation;
}

// In `panels` panels or a few less, of eights of columns, so that eight positions that are stored together, and
// gathered from different banks, lie in one row.
inline Patches patches_of(const ConvProblem& c, int tile, int panels) {
  const int eights = static_cast<int>(quotient_up(quotient_up(c.out_width(), panels), 8)) * 8;
  const int panel = std::min(eights, c.out_width());
  panels = quotient_up(c.out_width(), panel);
  const int out_rows = std::min(tile % panel == 0 ? tile / panel : (tile + panel - 2) / panel + 1, c.out_height());
  const int rows = (out_rows - 1) * c.stride_h + c.dilation * (c.kernel_h - 1) + 1;
  const bool by_fours = c.width % 4 == 0;
  const int seen = (panel - 1) * c.stride_w + c.dilation * (c.kernel_w - 1) + 1, most_unseen = by_fours ? 3 : 0;
  const int pitch = quotient_up(seen + most_unseen, 4) * 4;
  const int tiles = quotient_up(c.out_height() * panel, tile), copies = by_fours ? pitch / 4 : pitch;
  constexpr int most_bits = 7;
  int row_bits = 0;
  while (row_bits < most_bits && 1 << row_bits < copies) ++row_bits;
  return {.channels = c.channels,
          .height = c.height,
          .width = c.width,
          .kernel_h = c.kernel_h,
          .kernel_w = c.kernel_w,
          .stride_h = c.stride_h,
          .stride_w = c.stride_w,
          .pad_h = c.pad_h,
          .pad_w = c.pad_w,
          .dilation = c.dilation,
          .out_h = c.out_height(),
          .out_w = c.out_width(),
          .tile = tile,
          .panel = panel,
          .panels = panels,
          .tiles_a_panel = tiles,
          .rows = rows,
          .pitch = pitch,
          .plane = rows * pitch,
          .by_fours = by_fours,
          .row_bits = row_bits,
          .by_panel = Divisor(panel),
          .by_tiles_a_panel = Divisor(tiles),
          .by_panels = Divisor(panels)};
}

}  // namespace twiddle::implicit_gemm
