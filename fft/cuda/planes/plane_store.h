#pragma once
#include "fft/cuda/device/async_copy.h"
#include "fft/cuda/device/register_fft.h"
#include "fft/cuda/planes/tile_map.h"
#include "fft/cuda/planes/tuned_on_h200.h"

namespace twiddle::small_fft {

// Where an inverse writes its planes, and in which of three ways (plane_arguments.h chooses).
struct PlaneTarget {
  TileMap tiles;
  float* target;
  const float* bias;  // one a column; null: none
  bool relu;
  // gather: a block's planes are gathered in shared memory and written as one contiguous range. Else each thread writes
  // its two columns from its registers; pairs: by 8 bytes, as both are adjacent and rows begin at even elements.
  bool gather, pairs;
  bool add;                       // accumulate: earlier colours have written a part of these planes
  int stage_height, stage_width;  // of a gathered plane
};

// Writes the two columns of a tile that a thread has in its registers, as the real and the imaginary parts of v, to
// their plane.
template <int H, int W>
class PlaneStore {
 public:
  // Which two columns a thread has: adjacent ones, or columns p and p + W/2. The latter are for stores of one element a
  // thread: there adjacent threads write adjacent elements, which is coalesced.
  TWIDDLE_HD static bool adjacent(const PlaneTarget& target) {
    return target.pairs || target.gather || (target.add && W < 16);
  }

  TWIDDLE_HD PlaneStore(const PlaneTarget& target, const TilePlace& place, int pair)
      : target_(target),
        place_(place),
        rows_(place.rows),
        column_(adjacent(target) ? 2 * pair : pair),
        apart_(adjacent(target) ? 1 : W / 2),
        width_(target.tiles.plane_width()),
        first_(place.columns.has(column_)),
        second_(place.columns.has(column_ + apart_)),
        at_(target.target + place.plane + std::int64_t(place.rows.first) * width_ + place.columns.first + column_) {}

  TWIDDLE_HD void store(Complex (&v)[H]) const {
    if (target_.add) {
      if constexpr (W >= least_width_of_atomics) return write_or_accumulate(v);
      load_and_add(v);
    }
    write(v);
  }

 private:
  // Fresh elements, which no earlier colour has written: those whose row and column are both fresh.
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

  // Large tiles: by atomics that return nothing, as there are no registers left for what a load would bring.
  TWIDDLE_HD void write_or_accumulate(const Complex (&v)[H]) const {
    const Fresh all = fresh();
    const auto put = [](float* at, float value, bool is_fresh) {
      if (is_fresh)
        *at = value;
      else
        atomic_accumulate(at, value);
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

  // Small tiles: all loads are in flight before the first sum is stored. (One condition an element, not nested ones:
  // the compiler then predicates the loads and needs no branches.)
  TWIDDLE_HD void load_and_add(Complex (&v)[H]) const {
    const Fresh all = fresh();
    unrolled<H>([&](auto row) {
      const bool row_is_fresh = all.rows.has(row);
      if (first_ && has(row) && !(row_is_fresh && all.first)) v[row].re += *first(row);
      if (second_ && has(row) && !(row_is_fresh && all.second)) v[row].im += *second(row);
    });
  }

  const PlaneTarget& target_;
  const TilePlace& place_;
  TileSpan rows_;  // a copy: place_ is in shared memory, which for all the compiler knows the stores might change
  int column_, apart_, width_;
  bool first_, second_;
  float* at_;
};

}  // namespace twiddle::small_fft
