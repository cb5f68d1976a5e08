#pragma once
#include <cuda_fp16.h>

#include "fft/cuda/planes/plane_fft.h"
#include "fft/cuda/stored_pairs/stored_spectrum.h"

namespace twiddle::small_fft {

// Writes the bins of a plane in a storage of stored_spectrum.h.
class HalfBins {
 public:
  // `plane`: matrix_row * columns + column; exponent: removed from its numbers.
  TWIDDLE_HD HalfBins(const ForwardArguments& arguments, std::int64_t plane, int exponent)
      : pairs_(arguments.halves_a_float == 2),
        of_plane_(reinterpret_cast<__half*>(arguments.spectrum) + plane / columns * (planes() * columns) +
                  plane % columns),
        pitch_(planes() * arguments.pitch),
        scale_(stored_pairs::scale_without(exponent)) {}

  TWIDDLE_HD void operator()(int bin, Complex number) const {
    __half* const at = of_plane_ + bin * pitch_;
    split(at, number.re * scale_);
    split(at + stored_pairs::im_high * columns, number.im * scale_);
  }

 private:
  static constexpr int columns = stored_pairs::columns_a_group;
  TWIDDLE_HD int planes() const { return pairs_ ? 4 : 2; }

  TWIDDLE_HD void split(__half* at, float number) const {
    const __half high = __float2half_rn(number);
    at[0] = high;
    if (pairs_) at[stored_pairs::re_low * columns] = __float2half_rn(number - __half2float(high));
  }

  bool pairs_;
  __half* of_plane_;
  std::int64_t pitch_;
  float scale_;
};

// What a forward kernel stores.
struct StoreFloatsOrHalves {
  template <int H, int W>
  TWIDDLE_HD static void store(const Complex (&v)[W], const ForwardArguments& arguments, std::int64_t plane, int row) {
    if (arguments.halves_a_float == 0) return StoreFloats::store<H, W>(v, arguments, plane, row);
    const TileMap& tiles = arguments.tiles;
    const int exponent = arguments.of_columns[tiles.column(plane)] + arguments.of_rows[tiles.matrix_row(plane)];
    store_bins<H, W>(v, HalfBins(arguments, plane, exponent), row);
  }
};

}  // namespace twiddle::small_fft
