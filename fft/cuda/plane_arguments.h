#pragma once
#include "fft/cuda/plane_inverse.h"
#include "fft/spectral_transform.h"

namespace twiddle::small_fft {

inline ForwardArguments forward_arguments(const Planes& planes, const PlaneSource& source, void* spectrum) {
  return {TileMap(planes), planes.matrix_rows() * planes.columns, source.values, static_cast<Complex*>(spectrum),
          source.mask};
}

// Where the tiles of one colour go.
inline PlaneTarget plane_target(const Planes& planes, const TileMap& tiles, bool add, float* target,
                                const PlaneEpilogue& epilogue) {
  // A GPU writes sectors of 32 bytes whole: rows that share them with others are better gathered first.
  constexpr int sector = 8;
  const bool whole = planes.grid.tiles() == 1;
  const std::int64_t size = std::int64_t(planes.height) * planes.width;
  const bool aligned = reinterpret_cast<std::uintptr_t>(target + planes.offset) % (sector * sizeof(float)) == 0 &&
                       planes.row_stride % sector == 0 && planes.column_stride % sector == 0;
  return {.tiles = tiles,
          .target = target,
          .bias = epilogue.bias,
          .relu = epilogue.relu,
          .even_rows = whole && aligned && planes.width % sector == 0 && planes.first_w % 2 == 0,
          .side_by_side = whole && planes.column_stride == size && planes.row_stride == planes.columns * size,
          .add = add,
          .stage_height = Divisor(tiles.most_rows()),
          .stage_width = Divisor(tiles.most_columns())};
}

// launch(arguments) for each colour of the planes' tiles, in order.
template <class Launch>
void for_each_colour(const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
                     const Launch& launch) {
  const Colours colours(planes);
  const bool several = colours.height * colours.width > 1;
  for (int h = 0; h < colours.height; ++h)
    for (int w = 0; w < colours.width; ++w) {
      const TileMap tiles(planes, h, w, colours);
      if (tiles.count() == 0) continue;
      launch(InverseArguments{plane_target(planes, tiles, several, target, epilogue),
                              planes.matrix_rows() * planes.columns, static_cast<const Complex*>(spectrum), !several});
    }
}

}  // namespace twiddle::small_fft
