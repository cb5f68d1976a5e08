#include "fft/winograd/winograd_transform.h"

#include "fft/winograd/winograd_form.h"
#include "framework/error.h"

namespace twiddle {

namespace {

enum class Operand { x, w, y };

// By the size of a window: x's has a tile's points, y's its outputs, w's is the kernel.
Operand operand_of(const Planes& planes) {
  if (planes.window_h == planes.grid.height) return Operand::x;
  return planes.window_h == planes.grid.step_h ? Operand::y : Operand::w;
}

// A tile of a plane, and its numbers in the spectrum: [bin][row, tile][column].
template <int outputs>
struct Tiles {
  using Form = WinogradForm<outputs>;

  explicit Tiles(const Planes& planes)
      : p(planes),
        columns(planes.columns),
        tiles(planes.grid.tiles()),
        tiles_w(planes.grid.tiles_w),
        bin_size(planes.matrix_rows() * planes.columns) {}

  struct Place {
    std::int64_t plane;  // floats before it
    int row, column;     // of the tile
  };
  TWIDDLE_HD Place place(std::int64_t i) const {
    const std::int64_t matrix_row = columns.quotient(i), column = columns.remainder(i);
    const std::int64_t row = tiles.quotient(matrix_row), tile = tiles.remainder(matrix_row);
    return {p.offset + row * p.row_stride + column * p.column_stride, static_cast<int>(tiles_w.quotient(tile)),
            static_cast<int>(tiles_w.remainder(tile))};
  }
  TWIDDLE_HD void load(const float* spectrum, std::int64_t i, float (&tile)[Form::points][Form::points]) const {
    for (int a = 0; a < Form::points; ++a)
      for (int b = 0; b < Form::points; ++b) tile[a][b] = spectrum[(a * Form::points + b) * bin_size + i];
  }
  TWIDDLE_HD void store(float* spectrum, std::int64_t i, const float (&tile)[Form::points][Form::points]) const {
    for (int a = 0; a < Form::points; ++a)
      for (int b = 0; b < Form::points; ++b) spectrum[(a * Form::points + b) * bin_size + i] = tile[a][b];
  }
  std::int64_t count() const { return bin_size; }

  Planes p;
  Divisor columns, tiles, tiles_w;
  std::int64_t bin_size;
};

// `line` of `size` x `size` elements of a tile.
template <int outputs, int size, auto line>
struct ForwardTile {
  Tiles<outputs> tiles;
  const float *source, *mask;
  float* spectrum;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const Planes& p = tiles.p;
    const auto place = tiles.place(i);
    const int top = p.first_h + place.row * p.grid.step_h, left = p.first_w + place.column * p.grid.step_w;
    float elements[size][size], bins[outputs + 2][outputs + 2];
    for (int r = 0; r < size; ++r)
      for (int c = 0; c < size; ++c) {
        const int row = top + r, column = left + c;
        const bool inside = row >= 0 && row < p.height && column >= 0 && column < p.width;
        const std::int64_t at = place.plane + std::int64_t(row) * p.width + column;
        elements[r][c] = inside && (mask == nullptr || mask[at] > 0) ? source[at] : 0;
      }
    nest<line>(elements, bins);
    tiles.store(spectrum, i, bins);
  }
};

// The way back to tiles that do not overlap.
template <int outputs, int size, auto line>
struct InverseTile {
  Tiles<outputs> tiles;
  const float* spectrum;
  float* target;
  PlaneEpilogue epilogue;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const Planes& p = tiles.p;
    const auto place = tiles.place(i);
    const int top = p.first_h + place.row * p.grid.step_h, left = p.first_w + place.column * p.grid.step_w;
    float bins[outputs + 2][outputs + 2], elements[size][size];
    tiles.load(spectrum, i, bins);
    nest<line>(bins, elements);
    const float bias = epilogue.bias != nullptr ? epilogue.bias[tiles.columns.remainder(i)] : 0;
    for (int r = 0; r < size; ++r)
      for (int c = 0; c < size; ++c) {
        if (top + r >= p.height || left + c >= p.width) continue;
        const float value = elements[r][c] + bias;
        target[place.plane + std::int64_t(top + r) * p.width + left + c] = epilogue.relu && value < 0 ? 0 : value;
      }
  }
};

// The way back to x, whose tiles overlap by two elements on each side: each call sums what the tile of its own and
// those above and to the left of it have for the elements that begin no other tile, always in the same order.
template <int outputs>
struct InverseOverlapping {
  using Form = WinogradForm<outputs>;
  Tiles<outputs> tiles;
  const float* spectrum;
  float* target;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const Planes& p = tiles.p;
    const auto place = tiles.place(i);
    const bool last_row = place.row + 1 == p.grid.tiles_h, last_column = place.column + 1 == p.grid.tiles_w;
    const int height = last_row ? Form::points : outputs, width = last_column ? Form::points : outputs;
    float sums[Form::points][Form::points] = {};
    for (int above = 0; above < 2; ++above)
      for (int before = 0; before < 2; ++before) {
        if (place.row < above || place.column < before) continue;
        float bins[Form::points][Form::points], elements[Form::points][Form::points];
        tiles.load(spectrum, i - (above * p.grid.tiles_w + before) * p.columns, bins);
        nest<Form::template input_transposed<float>>(bins, elements);
        for (int r = above * outputs; r < Form::points; ++r)
          for (int c = before * outputs; c < Form::points; ++c)
            sums[r - above * outputs][c - before * outputs] += elements[r][c];
      }
    const int top = p.first_h + place.row * outputs, left = p.first_w + place.column * outputs;
    for (int r = 0; r < Form::points; ++r)
      for (int c = 0; c < Form::points; ++c) {
        const int row = top + r, column = left + c;
        if (r >= height || c >= width || row < 0 || row >= p.height || column < 0 || column >= p.width) continue;
        target[place.plane + std::int64_t(row) * p.width + column] = sums[r][c];
      }
  }
};

// The sum over a column's planes of y.
template <int outputs>
struct ColumnSum {
  using Form = WinogradForm<outputs>;
  Tiles<outputs> tiles;
  const float* spectrum;
  bool add;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    float bins[Form::points][Form::points], rows[Form::points];
    tiles.load(spectrum, row * tiles.p.columns + column, bins);
    for (int a = 0; a < Form::points; ++a) rows[a] = Form::sum(bins[a]);
    return Form::sum(rows);
  }
  TWIDDLE_HD void store(std::int64_t column, double sum) const {
    sums[column] = static_cast<float>(add ? sums[column] + sum : sum);
  }
};

constexpr std::int64_t operations_a_tile = 500;

}  // namespace

template <int outputs>
std::vector<FrequencyGrid> WinogradTransform<outputs>::grids(const ConvProblem& problem) const {
  if (problem.kernel_h != 3 || problem.kernel_w != 3 || problem.stride_h != 1 || problem.stride_w != 1 ||
      problem.dilation != 1)
    return {};
  const auto tiles = [](int size) { return (size + outputs - 1) / outputs; };
  return {{outputs + 2, outputs + 2, tiles(problem.out_height()), tiles(problem.out_width()), outputs, outputs}};
}

template <int outputs>
std::size_t WinogradTransform<outputs>::spectrum_bytes(const Planes& planes) const {
  return static_cast<std::size_t>(bins(planes.grid) * planes.matrix_rows() * planes.columns) * sizeof(float);
}

template <int outputs>
void WinogradTransform<outputs>::forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum,
                                         void* /*scratch*/) {
  using Form = WinogradForm<outputs>;
  const Tiles<outputs> tiles(planes);
  const auto run = [&](const auto& tile) { for_each_index(*ctx.stream, tiles.count(), tile, operations_a_tile); };
  auto* const to = static_cast<float*>(spectrum);
  switch (operand_of(planes)) {
    case Operand::x:
      return run(
          ForwardTile<outputs, Form::points, Form::template input<float>>{tiles, source.values, source.mask, to});
    case Operand::y:
      return run(ForwardTile<outputs, outputs, Form::template output_transposed<float>>{tiles, source.values,
                                                                                        source.mask, to});
    case Operand::w:
      return run(ForwardTile<outputs, 3, Form::template filter<float>>{tiles, source.values, source.mask, to});
  }
}

template <int outputs>
void WinogradTransform<outputs>::inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target,
                                         const PlaneEpilogue& epilogue, void* /*scratch*/) {
  using Form = WinogradForm<outputs>;
  const Tiles<outputs> tiles(planes);
  const auto run = [&](const auto& tile) { for_each_index(*ctx.stream, tiles.count(), tile, operations_a_tile); };
  const auto* const from = static_cast<const float*>(spectrum);
  switch (operand_of(planes)) {
    case Operand::x:
      require(epilogue.bias == nullptr && !epilogue.relu, "bias and relu are for tiles that do not overlap");
      return run(InverseOverlapping<outputs>{tiles, from, target});
    case Operand::y:
      return run(InverseTile<outputs, outputs, Form::template output<float>>{tiles, from, target, epilogue});
    case Operand::w:
      return run(InverseTile<outputs, 3, Form::template filter_transposed<float>>{tiles, from, target, epilogue});
  }
}

template <int outputs>
void WinogradTransform<outputs>::sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add,
                                             float* sums) {
  reduce_columns(*ctx.stream, planes.matrix_rows(), planes.columns,
                 ColumnSum<outputs>{Tiles<outputs>(planes), static_cast<const float*>(spectrum), add, sums});
}

template class WinogradTransform<2>;
template class WinogradTransform<4>;

}  // namespace twiddle
