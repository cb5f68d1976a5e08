#pragma once
#include <algorithm>
#include <cstdint>

#include "fft/cuda/winograd/tuned_on_h200.h"
#include "fft/grid.h"
#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle::winograd_blocks {

// How blocks of threads share the tiles of an operand. A plane is contiguous along its width, a spectrum along its
// columns: [bin][row, tile][column]. So a block takes a rectangle of tiles of the planes of up to 32 adjacent columns
// (and of several rows, where planes are small), and stages the elements of these tiles in shared memory: there its
// threads go along the width between the planes and shared memory, and along the columns between shared memory and the
// spectrum, so that both accesses are coalesced.
//
// The staged elements of one plane are its patch, patch_h x patch_w. Patches are an odd number of floats apart, so that
// 32 lanes with a patch each meet no bank conflict.
class TileBlocks {
 public:
  // `overlap`: elements that a tile shares with the next, if tiles are added up. A block then also has the tiles above
  // and to the left of its tiles, which add to its elements.
  TileBlocks(const Planes& planes, int overlap, std::int64_t wanted_blocks);

  std::int64_t count() const {
    return column_blocks_.value() * across_.value() * down_.value() * divided_up(p.rows, rows_);
  }
  int threads() const {
    const std::int64_t rounds = divided_up(items(), most_threads);
    return static_cast<int>(divided_up(divided_up(items(), rounds), 32) * 32);
  }
  TWIDDLE_HD int staged_floats() const { return rows_ * columns_ * pitch_; }
  int staged_bytes() const { return staged_floats() * static_cast<int>(sizeof(float)); }

  // What one block has.
  struct Place {
    std::int64_t row, column;   // of the planes, its first
    int rows, columns;          // as many
    int tile_row, tile_column;  // its first tile
    int top, left;              // of the patch, in the plane
  };
  TWIDDLE_HD Place place(std::int64_t block) const {
    const std::int64_t tiles = column_blocks_.quotient(block), rest = across_.quotient(tiles);
    const std::int64_t rows = down_.quotient(rest);
    Place at;
    at.column = (block - tiles * column_blocks_.value()) * columns_, at.row = rows * rows_;
    at.columns = static_cast<int>(smaller(columns_, p.columns - at.column));
    at.rows = static_cast<int>(smaller(rows_, p.rows - at.row));
    at.tile_row = static_cast<int>(rest - rows * down_.value()) * tiles_h_;
    at.tile_column = static_cast<int>(tiles - rest * across_.value()) * tiles_w_;
    at.top = p.first_h + at.tile_row * p.grid.step_h, at.left = p.first_w + at.tile_column * p.grid.step_w;
    return at;
  }

  struct Element {
    int staged;       // index in shared memory
    std::int64_t at;  // index in the tensor
    bool inside;      // whether the plane has it
    bool own;         // the plane has it, and no other block adds to it
  };
  // Calls f(Element) for the thread's elements of the block's patches. A warp goes along a patch, the next warp takes
  // the next plane.
  template <class F>
  TWIDDLE_HD void for_each_element(const Place& at, int thread, int threads, const F& f) const {
    const std::int64_t first_plane = p.offset + at.row * p.row_stride + at.column * p.column_stride;
    if (planes_adjoin_) {  // both in the tensor and in shared memory
      for (int r = 0; r < at.rows; ++r)
        for (int e = thread; e < at.columns * pitch_; e += threads)
          f(Element{r * columns_ * pitch_ + e, first_plane + r * p.row_stride + e, true, true});
      return;
    }
    const int lane = thread % 32, warp = thread / 32, warps = threads / 32;
    for (int e = lane; e < patch_h_ * patch_w(); e += 32) {
      const int i = static_cast<int>(patch_w_.quotient(e)), j = e - i * patch_w();
      const int row = at.top + i, column = at.left + j;
      const bool inside = row >= 0 && row < p.height && column >= 0 && column < p.width;
      const bool own = inside && finishes(at, i, j);
      const std::int64_t element = first_plane + std::int64_t(row) * p.width + column;
      for (int r = 0; r < at.rows; ++r) {
#pragma unroll 4
        for (int c = warp; c < at.columns; c += warps)
          f(Element{(r * columns_ + c) * pitch_ + e, element + r * p.row_stride + c * p.column_stride, inside, own});
      }
    }
  }

  // A tile of one plane: threads take them item by item, lanes along the columns.
  TWIDDLE_HD int items() const {
    return rows_ * (tiles_h_ + above_) * (tiles_w_ + before_) * columns_;
  }
  struct Tile {
    bool present;      // an item at the edge of the planes may have none
    int row, column;   // of tiles, in the grid
    int patch;         // index of the plane's patch in shared memory
    int down, across;  // from the patch's first element to the tile's; negative: it begins in another block
    int plane_column;  // of all
    std::int64_t bin;  // index within a bin of the spectrum
  };
  TWIDDLE_HD Tile tile(const Place& at, int item) const {
    const int t = static_cast<int>(columns_divisor_.quotient(item)), c = item - t * columns_;
    const int tu = static_cast<int>(items_w_.quotient(t)), j = t - tu * static_cast<int>(items_w_.value()) - before_;
    const int r = static_cast<int>(items_h_.quotient(tu)), i = tu - r * static_cast<int>(items_h_.value()) - above_;
    Tile found;
    found.row = at.tile_row + i, found.column = at.tile_column + j;
    found.present = r < at.rows && c < at.columns && found.row >= 0 && found.row < p.grid.tiles_h &&
                    found.column >= 0 && found.column < p.grid.tiles_w;
    found.patch = (r * columns_ + c) * pitch_;
    found.down = i * p.grid.step_h, found.across = j * p.grid.step_w;
    found.plane_column = static_cast<int>(at.column) + c;
    const std::int64_t row_of_tiles = (at.row + r) * p.grid.tiles_h + found.row;
    found.bin = (row_of_tiles * p.grid.tiles_w + found.column) * p.columns + found.plane_column;
    return found;
  }
  // Floats from one bin to the next.
  TWIDDLE_HD std::int64_t bin_size() const {
    return p.rows * p.grid.tiles_h * p.grid.tiles_w * p.columns;
  }

  TWIDDLE_HD int patch_w() const {
    return static_cast<int>(patch_w_.value());
  }

  Planes p;

 private:
  static std::int64_t divided_up(std::int64_t count, std::int64_t by) {
    return (count + by - 1) / by;
  }
  // Elements of a patch below and right of these are completed by the next block.
  TWIDDLE_HD bool finishes(const Place& at, int i, int j) const {
    return (i < tiles_h_ * p.grid.step_h || at.tile_row + tiles_h_ >= p.grid.tiles_h) &&
           (j < tiles_w_ * p.grid.step_w || at.tile_column + tiles_w_ >= p.grid.tiles_w);
  }
  TWIDDLE_HD static std::int64_t smaller(std::int64_t a, std::int64_t b) {
    return a < b ? a : b;
  }

  int rows_ = 1, columns_, tiles_h_, tiles_w_;  // of a block
  int above_ = 0, before_ = 0;                  // tiles of others that add to its elements
  int patch_h_ = 0, pitch_ = 0;
  bool planes_adjoin_ = false;
  Divisor patch_w_{1}, items_h_{1}, items_w_{1}, columns_divisor_{1}, column_blocks_{1}, across_{1}, down_{1};
};

inline TileBlocks::TileBlocks(const Planes& planes, int overlap, std::int64_t wanted_blocks) : p(planes) {
  const FrequencyGrid& grid = p.grid;
  const int most_tiles = (overlap > 0 ? outputs_overlapping : outputs_apart) / (grid.step_h * grid.step_w);
  columns_ = static_cast<int>(std::min<std::int64_t>(p.columns, most_columns));
  tiles_h_ = grid.tiles_h, tiles_w_ = grid.tiles_w;
  const auto derive = [&] {
    patch_h_ = (tiles_h_ - 1) * grid.step_h + p.window_h;
    patch_w_ = Divisor((tiles_w_ - 1) * grid.step_w + p.window_w);
    pitch_ = (patch_h_ * patch_w()) | 1;
    column_blocks_ = Divisor(divided_up(p.columns, columns_));
    across_ = Divisor(divided_up(grid.tiles_w, tiles_w_)), down_ = Divisor(divided_up(grid.tiles_h, tiles_h_));
  };
  derive();
  const auto tiles = [&] { return rows_ * tiles_h_ * tiles_w_; };
  const auto fits = [&] { return tiles() <= most_tiles && staged_bytes() <= most_staged_bytes; };
  // Fewer rows of tiles before narrower ones, so that what is contiguous stays long.
  while (tiles() > 1 && (!fits() || (tiles() > least_tiles && count() < wanted_blocks))) {
    int& longer = tiles_h_ > 1 ? tiles_h_ : tiles_w_;
    longer = (longer + 1) / 2;
    derive();
  }
  require(fits(), "a tile of ", p.window_h, "x", p.window_w, " elements is too large for a block");
  while (rows_ < p.rows && fits() && count() >= wanted_blocks) ++rows_;
  if (rows_ > 1 && (!fits() || count() < wanted_blocks)) --rows_;
  above_ = overlap > 0 && down_.value() > 1 ? 1 : 0, before_ = overlap > 0 && across_.value() > 1 ? 1 : 0;
  items_h_ = Divisor(tiles_h_ + above_), items_w_ = Divisor(tiles_w_ + before_), columns_divisor_ = Divisor(columns_);
  planes_adjoin_ = p.grid.tiles() == 1 && p.first_h == 0 && p.first_w == 0 && p.height == patch_h_ &&
                   p.width == patch_w() && pitch_ == p.column_stride;
  require(count() < std::int64_t(1) << 31, "planes of ", p.height, "x", p.width, " are too many for one launch: a ",
          "smaller workspace limit takes fewer images at once");
}

}  // namespace twiddle::winograd_blocks
