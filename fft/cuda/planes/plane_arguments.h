#pragma once
#include "fft/cuda/planes/plane_inverse.h"
#include "fft/cuda/planes/tuned_on_h200.h"
#include "fft/spectral_transform.h"

namespace twiddle::small_fft {

inline ForwardArguments forward_arguments(const Planes& planes, const PlaneSource& source, void* spectrum) {
  return {TileMap(planes), planes.matrix_rows() * planes.columns, source.values, static_cast<Complex*>(spectrum),
          source.mask};
}

// Returns the target for the tiles of one color, with whichever of the three methods of plane_store.h needs the fewest
// memory transactions.
inline PlaneTarget plane_target(const Planes& planes, const TileMap& tiles, bool add, float* target,
                                const PlaneEpilogue& epilogue) {
  const bool whole = planes.grid.tiles() == 1;
  const std::int64_t size = std::int64_t(planes.height) * planes.width;
  // Returns whether all rows of the planes are aligned to `floats` floats.
  const auto begin_at = [&](int floats) {
    return reinterpret_cast<std::uintptr_t>(target + planes.offset) % (floats * sizeof(float)) == 0 &&
           planes.row_stride % floats == 0 && planes.column_stride % floats == 0 && planes.width % floats == 0;
  };
  const bool even_tiles =
      planes.first_w % 2 == 0 && (whole || (planes.grid.step_w % 2 == 0 && planes.window_w % 2 == 0));
  // A GPU writes memory by sectors of 32 bytes. If the rows are not aligned to sectors, two threads write parts of the
  // same one: then contiguous planes are faster written as one range, unless the rows are long.
  constexpr int sector = 8;  // floats
  const bool contiguous = whole && planes.column_stride == size && planes.row_stride == planes.columns * size;
  const bool pairs = even_tiles && begin_at(2), long_rows = planes.width >= (pairs ? long_row_of_pairs : long_row);
  return {.tiles = tiles,
          .target = target,
          .bias = epilogue.bias,
          .relu = epilogue.relu,
          .gather = contiguous && !(pairs && begin_at(sector)) && !long_rows,
          .pairs = pairs,
          .add = add,
          .stage_height = tiles.most_rows(),
          .stage_width = tiles.most_columns()};
}

// launch(arguments) for each colour of the planes' tiles, in the order that fresh_rows() relies on.
template <class Launch>
void for_each_colour(const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
                     const Launch& launch) {
  const Colours colours(planes);
  const bool several = colours.height * colours.width > 1;
  for (int h = 0; h < colours.height; ++h)
    for (int w = 0; w < colours.width; ++w) {
      const TileMap tiles(planes, h, w, colours);
      if (tiles.count() == 0) continue;
      const bool add = h + w > 0;  // before the first colour, memory is undefined
      launch(InverseArguments{plane_target(planes, tiles, add, target, epilogue), planes.matrix_rows() * planes.columns,
                              static_cast<const Complex*>(spectrum), !several});
    }
}

}  // namespace twiddle::small_fft
