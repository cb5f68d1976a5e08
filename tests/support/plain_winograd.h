#pragma once
#include "fft/winograd/winograd_form.h"
#include "fft/winograd/winograd_transform.h"

namespace twiddle {

// Winograd's transform on a CPU by plain loops, one tile at a time: the reference for the fast ones.
template <int outputs>
class PlainWinograd final : public WinogradTransform<outputs> {
 public:
  using Form = WinogradForm<outputs>;
  static constexpr int points = Form::points;

  void forward(Context& /*ctx*/, const Planes& planes, const PlaneSource& source, void* spectrum, void*) override {
    for_each_tile(planes, [&](const Tile& tile) {
      float bins[points][points];
      switch (operand_of(planes)) {
        case ConvOperand::x:
          nest<Form::template input<float>>(elements<points>(planes, tile, source).at, bins);
          break;
        case ConvOperand::y:
          nest<Form::template output_transposed<float>>(elements<outputs>(planes, tile, source).at, bins);
          break;
        case ConvOperand::w:
          nest<Form::template filter<float>>(elements<3>(planes, tile, source).at, bins);
          break;
      }
      for (int bin = 0; bin < points * points; ++bin)
        static_cast<float*>(spectrum)[bin * bin_size(planes) + tile.place] = bins[bin / points][bin % points];
    });
  }

  void inverse(Context& /*ctx*/, const Planes& planes, const void* spectrum, float* target,
               const PlaneEpilogue& epilogue, void*) override {
    if (operand_of(planes) == ConvOperand::x) clear(planes, target);
    for_each_tile(planes, [&](const Tile& tile) {
      float bins[points][points];
      for (int bin = 0; bin < points * points; ++bin)
        bins[bin / points][bin % points] = static_cast<const float*>(spectrum)[bin * bin_size(planes) + tile.place];
      switch (operand_of(planes)) {
        case ConvOperand::x:
          return store<Form::template input_transposed<float>, points>(planes, tile, bins, target, epilogue, true);
        case ConvOperand::y:
          return store<Form::template output<float>, outputs>(planes, tile, bins, target, epilogue, false);
        case ConvOperand::w:
          return store<Form::template filter_transposed<float>, 3>(planes, tile, bins, target, epilogue, false);
      }
    });
  }

 private:
  struct Tile {
    std::int64_t plane, column, place;  // floats before the plane; the plane's column; index within a bin
    int top, left;                      // in the plane
  };
  template <int size>
  struct Elements {
    float at[size][size];
  };

  static std::int64_t bin_size(const Planes& planes) { return planes.matrix_rows() * planes.columns; }

  template <class F>
  static void for_each_tile(const Planes& planes, const F& f) {
    std::int64_t place = 0;
    for (std::int64_t row = 0; row < planes.rows; ++row)
      for (int i = 0; i < planes.grid.tiles_h; ++i)
        for (int j = 0; j < planes.grid.tiles_w; ++j)
          for (std::int64_t column = 0; column < planes.columns; ++column)
            f(Tile{planes.offset + row * planes.row_stride + column * planes.column_stride, column, place++,
                   planes.first_h + i * planes.grid.step_h, planes.first_w + j * planes.grid.step_w});
  }

  static void clear(const Planes& planes, float* target) {
    for (std::int64_t row = 0; row < planes.rows; ++row)
      for (std::int64_t i = 0; i < planes.columns * planes.column_stride; ++i)
        target[planes.offset + row * planes.row_stride + i] = 0;
  }

  static bool inside(const Planes& planes, int row, int column) {
    return row >= 0 && row < planes.height && column >= 0 && column < planes.width;
  }

  template <int size>
  static Elements<size> elements(const Planes& planes, const Tile& tile, const PlaneSource& source) {
    Elements<size> found{};
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        if (!inside(planes, tile.top + i, tile.left + j)) continue;
        const std::int64_t at = tile.plane + std::int64_t(tile.top + i) * planes.width + tile.left + j;
        if (source.mask == nullptr || source.mask[at] > 0) found.at[i][j] = source.values[at];
      }
    return found;
  }

  template <auto line, int size>
  static void store(const Planes& planes, const Tile& tile, const float (&bins)[points][points], float* target,
                    const PlaneEpilogue& epilogue, bool add) {
    float found[size][size];
    nest<line>(bins, found);
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        if (!inside(planes, tile.top + i, tile.left + j)) continue;
        float& to = target[tile.plane + std::int64_t(tile.top + i) * planes.width + tile.left + j];
        const float value = found[i][j] + (epilogue.bias != nullptr ? epilogue.bias[tile.column] : 0);
        to = (add ? to : 0) + (epilogue.relu && value < 0 ? 0 : value);
      }
  }
};

}  // namespace twiddle
