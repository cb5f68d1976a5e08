#pragma once
#include "fft/cuda/planes/plane_inverse.h"
#include "fft/spectral_transform.h"

namespace twiddle::small_fft {

inline ForwardArguments forward_arguments(const Planes& planes, const PlaneSource& source, void* spectrum) {
  return {TileMap(planes), planes.matrix_rows() * planes.columns, source.values, static_cast<Complex*>(spectrum),
          source.mask};
}

// Where the tiles of one colour go.
inline PlaneTarget plane_target(const Planes& planes, const TileMap& tiles, bool add, float* target,
                                const PlaneEpilogue& epilogue) {
  const bool whole = planes.grid.tiles() == 1;
  const std::int64_t size = std::int64_t(planes.height) * planes.width;
  // Whether rows of planes and of tiles begin at places that so many floats divide.
  const auto begin_at = [&](int floats) {
    return reinterpret_cast<std::uintptr_t>(target + planes.offset) % (floats * sizeof(float)) == 0 &&
           planes.row_stride % floats == 0 && planes.column_stride % floats == 0 && planes.width % floats == 0;
  };
  const bool even_tiles =
      planes.first_w % 2 == 0 && (whole || (planes.grid.step_w % 2 == 0 && planes.window_w % 2 == 0));
  // A GPU writes sectors of 32 bytes whole: where rows share them with others, planes that lie behind each other are
  // better written as one stretch, unless the rows are long. (From where on was measured on an H200.)
  constexpr int sector = 8;
  const bool side_by_side = whole && planes.column_stride == size && planes.row_stride == planes.columns * size;
  const bool pairs = even_tiles && begin_at(2), long_rows = planes.width >= (pairs ? 20 : 44);
  return {.tiles = tiles,
          .target = target,
          .bias = epilogue.bias,
          .relu = epilogue.relu,
          .gather = side_by_side && !(pairs && begin_at(sector)) && !long_rows,
          .pairs = pairs,
          .add = add,
          .stage_height = tiles.most_rows(),
          .stage_width = tiles.most_columns()};
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
      const bool add = h + w > 0;  // the first colour finds nothing there
      launch(InverseArguments{plane_target(planes, tiles, add, target, epilogue), planes.matrix_rows() * planes.columns,
                              static_cast<const Complex*>(spectrum), !several});
    }
}

}  // namespace twiddle::small_fft
