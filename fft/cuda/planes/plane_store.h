#pragma once
#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/device/register_fft.h"
#include "fft/cuda/planes/tile_map.h"

namespace twiddle::small_fft {

// Where the planes of an inverse go, and how.
struct PlaneTarget {
  TileMap tiles;
  float* target;
  const float* bias;  // one a column; null: none
  bool relu;
  // Whether a block's planes are gathered in shared memory, to be written as the one stretch that they are; else each
  // thread writes its columns from its registers: in pairs, where these lie at even places.
  bool gather, pairs;
  bool add;                       // to what launches of earlier colours wrote
  int stage_height, stage_width;  // of a plane that is gathered: most_rows(), most_columns()
};

// The two columns of an inverse's tile that a thread has, as the real and the imaginary parts of its numbers, on their
// way from its registers to their plane.
template <int H, int W>
class TwoColumns {
 public:
  // Whether they are neighbours. Those that are written one element at a time are half a tile apart: so threads beside
  // each other write elements beside each other.
  TWIDDLE_HD static bool neighbours(const PlaneTarget& target) {
    return target.pairs || target.gather || (target.add && W < 16);
  }

  TWIDDLE_HD TwoColumns(const PlaneTarget& target, const TilePlace& place, int pair)
      : target_(target),
        place_(place),
        rows_(place.rows),
        column_(neighbours(target) ? 2 * pair : pair),
        apart_(neighbours(target) ? 1 : W / 2),
        width_(target.tiles.plane_width()),
        first_(place.columns.has(column_)),
        second_(place.columns.has(column_ + apart_)),
        at_(target.target + place.plane + std::int64_t(place.rows.first) * width_ + place.columns.first + column_) {}

  TWIDDLE_HD void store(Complex (&v)[H]) const {
    if (target_.add) {
      // Large tiles leave no registers for what would have to be read first: they are added to 7 to 35 % faster without
      // reading it, small ones up to 40 % slower.
      if constexpr (W >= 24) return write_or_add(v);
      add_what_is_there(v);
    }
    write(v);
  }

 private:
  // What no launch of an earlier colour wrote to: elements whose row and column are both fresh.
  struct Fresh {
    TileSpan rows;
    bool first, second;
  };
  TWIDDLE_HD Fresh fresh() const {
    const TileSpan columns = target_.tiles.fresh_columns(place_);
    return {target_.tiles.fresh_rows(place_), columns.has(column_), columns.has(column_ + apart_)};
  }
  TWIDDLE_HD bool has(int row) const { return rows_.has(row); }
  TWIDDLE_HD float* first(int row) const { return at_ + row * width_; }
  TWIDDLE_HD float* second(int row) const { return first(row) + apart_; }

  TWIDDLE_HD void write(const Complex (&v)[H]) const {
    if (target_.pairs) {
      unrolled<H>([&](auto row) {
        if (first_ && has(row)) *reinterpret_cast<Complex*>(first(row)) = v[row];
      });
    } else {
      unrolled<H>([&](auto row) {
        if (first_ && has(row)) *first(row) = v[row].re;
        if (second_ && has(row)) *second(row) = v[row].im;
      });
    }
  }

  TWIDDLE_HD void write_or_add(const Complex (&v)[H]) const {
    const Fresh all = fresh();
    const auto put = [](float* at, float value, bool is_fresh) {
      if (is_fresh)
        *at = value;
      else
        add_beside(at, value);
    };
    unrolled<H>([&](auto row) {
      if (!has(row)) return;
      const bool first_is_fresh = all.rows.has(row) && all.first, second_is_fresh = all.rows.has(row) && all.second;
      if (target_.pairs && first_ && first_is_fresh && second_is_fresh) {
        *reinterpret_cast<Complex*>(first(row)) = v[row];
        return;
      }
      if (first_) put(first(row), v[row].re, first_is_fresh);
      if (second_) put(second(row), v[row].im, second_is_fresh);
    });
  }

  // All is read before any is written. (The conditions stand side by side, which keeps the loads free of branches.)
  TWIDDLE_HD void add_what_is_there(Complex (&v)[H]) const {
    const Fresh all = fresh();
    unrolled<H>([&](auto row) {
      const bool row_is_fresh = all.rows.has(row);
      if (first_ && has(row) && !(row_is_fresh && all.first)) v[row].re += *first(row);
      if (second_ && has(row) && !(row_is_fresh && all.second)) v[row].im += *second(row);
    });
  }

  const PlaneTarget& target_;
  const TilePlace& place_;
  TileSpan rows_;  // its own: the place is in shared memory, and what is written might be it, for all a compiler knows
  int column_, apart_, width_;
  bool first_, second_;
  float* at_;
};

}  // namespace twiddle::small_fft
