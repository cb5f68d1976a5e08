#include "tests/support/plain_backend.h"

#include <complex>
#include <numbers>
#include <type_traits>

namespace twiddle {

namespace {

using Complex = std::complex<double>;

template <class Real>
constexpr SpectrumStorage storage_of =
    std::is_same_v<Real, double> ? SpectrumStorage::interleaved_doubles : SpectrumStorage::interleaved;

// e^(-2 pi i k / n) for all k < n.
std::vector<Complex> turns_of(int n) {
  std::vector<Complex> turns;
  for (int k = 0; k < n; ++k) turns.push_back(std::polar(1.0, -2 * std::numbers::pi * k / n));
  return turns;
}

template <class Real>
class PlainTransform final : public SpectralTransform {
 public:
  explicit PlainTransform(std::vector<FrequencyGrid> grids) : grids_(std::move(grids)) {}
  std::string_view name() const override { return "plain"; }
  SpectrumStorage storage() const override { return storage_of<Real>; }
  std::vector<FrequencyGrid> grids(const ConvProblem&) const override { return grids_; }
  std::size_t spectrum_bytes(const Planes& planes) const override {
    return static_cast<std::size_t>(planes.grid.bins() * planes.matrix_rows() * planes.columns) * sizeof(Number);
  }
  std::size_t scratch_bytes(const Planes&) const override { return 64; }
  bool masks_and_sums() const override { return true; }
  void sum_columns(Context&, const Planes& p, const void* spectrum, bool add, float* sums) override {
    for (std::int64_t column = 0; column < p.columns; ++column) {
      double sum = add ? sums[column] : 0;
      for (std::int64_t row = 0; row < p.matrix_rows(); ++row)
        sum += double(at(p, const_cast<void*>(spectrum), 0, 0, row * p.columns + column).real());
      sums[column] = static_cast<float>(sum);
    }
  }

  // The sum over a row's elements, then that over rows.
  void forward(Context&, const Planes& p, const PlaneSource& source, void* spectrum, void*) override {
    const int height = p.grid.height, half = p.grid.width / 2 + 1;
    const std::vector<Complex> down = turns_of(height), across = turns_of(p.grid.width);
    each_tile(p, [&](std::int64_t plane, std::int64_t place, int top, int left) {
      std::vector<Complex> rows(static_cast<std::size_t>(p.window_h * half));
      for (int i = 0; i < p.window_h; ++i)
        for (int u = 0; u < half; ++u)
          for (int j = 0; j < p.window_w; ++j)
            if (inside(p, top + i, left + j) && passes(source, plane + (top + i) * p.width + left + j))
              rows[static_cast<std::size_t>(i * half + u)] +=
                  double(source.values[plane + (top + i) * p.width + left + j]) * turn(across, u * j);
      for (int v = 0; v < height; ++v)
        for (int u = 0; u < half; ++u) {
          Complex sum = 0;
          for (int i = 0; i < p.window_h; ++i) sum += rows[static_cast<std::size_t>(i * half + u)] * turn(down, v * i);
          at(p, spectrum, v, u, place) = Number(sum);
        }
    });
  }

  void inverse(Context&, const Planes& p, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void*) override {
    for (std::int64_t row = 0; row < p.rows; ++row)
      for (std::int64_t column = 0; column < p.columns; ++column)
        for (int i = 0; i < p.height * p.width; ++i)
          target[p.offset + row * p.row_stride + column * p.column_stride + i] = 0;
    const int height = p.grid.height, half = p.grid.width / 2 + 1;
    const std::vector<Complex> down = turns_of(height), across = turns_of(p.grid.width);
    each_tile(p, [&](std::int64_t plane, std::int64_t place, int top, int left) {
      std::vector<Complex> rows(static_cast<std::size_t>(p.window_h * half));
      for (int i = 0; i < p.window_h; ++i)
        for (int u = 0; u < half; ++u)
          for (int v = 0; v < height; ++v)
            rows[static_cast<std::size_t>(i * half + u)] +=
                Complex(at(p, const_cast<void*>(spectrum), v, u, place)) * std::conj(turn(down, v * i));
      for (int i = 0; i < p.window_h; ++i)
        for (int j = 0; j < p.window_w; ++j) {
          if (!inside(p, top + i, left + j)) continue;
          double sum = 0;
          for (int u = 0; u < half; ++u) {
            const bool twice = u > 0 && 2 * u < p.grid.width;  // the conjugate bin that is not stored
            sum += (twice ? 2 : 1) *
                   (rows[static_cast<std::size_t>(i * half + u)] * std::conj(turn(across, u * j))).real();
          }
          target[plane + (top + i) * p.width + left + j] += static_cast<float>(sum / (height * p.grid.width));
        }
    });
    for (std::int64_t row = 0; row < p.rows; ++row)
      for (std::int64_t column = 0; column < p.columns; ++column)
        for (int i = 0; i < p.height * p.width; ++i) {
          float& y = target[p.offset + row * p.row_stride + column * p.column_stride + i];
          if (epilogue.bias) y += epilogue.bias[column];
          if (epilogue.relu && y < 0) y = 0;
        }
  }

 private:
  using Number = std::complex<Real>;
  static Complex turn(const std::vector<Complex>& turns, int k) {
    return turns[static_cast<std::size_t>(k) % turns.size()];
  }
  static bool passes(const PlaneSource& source, std::int64_t place) { return !source.mask || source.mask[place] > 0; }
  static bool inside(const Planes& p, int i, int j) { return i >= 0 && i < p.height && j >= 0 && j < p.width; }
  static Number& at(const Planes& p, void* spectrum, int v, int u, std::int64_t place) {
    return static_cast<Number*>(
        spectrum)[(std::int64_t(v) * (p.grid.width / 2 + 1) + u) * p.matrix_rows() * p.columns + place];
  }
  // work(floats before the plane, place in a bin's matrix, top and left of the window in the plane)
  template <class Work>
  static void each_tile(const Planes& p, const Work& work) {
    for (std::int64_t row = 0; row < p.rows; ++row)
      for (std::int64_t column = 0; column < p.columns; ++column)
        for (int s = 0; s < p.grid.tiles_h; ++s)
          for (int t = 0; t < p.grid.tiles_w; ++t)
            work(p.offset + row * p.row_stride + column * p.column_stride,
                 (row * p.grid.tiles() + s * p.grid.tiles_w + t) * p.columns + column, p.first_h + s * p.grid.step_h,
                 p.first_w + t * p.grid.step_w);
  }
  std::vector<FrequencyGrid> grids_;
};

template <class Real>
class PlainProduct final : public FrequencyProduct {
 public:
  std::string_view name() const override { return "plain"; }
  SpectrumStorage storage() const override { return storage_of<Real>; }
  std::size_t scratch_bytes(const FrequencyGemm&) const override { return 0; }
  void run(Context&, const FrequencyGemm& g, const void* a, const void* b, void* c, void*) override {
    using Number = std::complex<Real>;
    const auto* const left = static_cast<const Number*>(a);
    const auto* const right = static_cast<const Number*>(b);
    auto* const out = static_cast<Number*>(c);
    for (std::int64_t matrix = 0; matrix < g.bins * g.groups; ++matrix)
      for (std::int64_t i = 0; i < g.m; ++i)
        for (std::int64_t j = 0; j < g.n; ++j) {
          Complex sum = 0;
          for (std::int64_t k = 0; k < g.k; ++k) {
            const Complex x = left[g.transpose_a ? place(g, g.a(), matrix, k, i) : place(g, g.a(), matrix, i, k)];
            const Complex y = right[g.transpose_b ? place(g, g.b(), matrix, j, k) : place(g, g.b(), matrix, k, j)];
            sum += (g.conjugate_a ? std::conj(x) : x) * (g.conjugate_b ? std::conj(y) : y);
          }
          Number& result = out[place(g, g.c(), matrix, i, j)];
          result = Number(g.accumulate ? Complex(result) + sum : sum);
        }
  }

 private:
  // Returns the index of an element of matrix bin * groups + group.
  static std::int64_t place(const FrequencyGemm& g, const GroupedMatrix& of, std::int64_t matrix, std::int64_t row,
                            std::int64_t column) {
    const std::int64_t bin = matrix / g.groups, group = matrix % g.groups;
    return bin * g.groups * of.rows * of.columns + group * of.group_step + row * of.pitch + column;
  }
};

template <class Real>
void add_plain(SpectralBackend& backend, const std::vector<FrequencyGrid>& grids) {
  backend.transforms.push_back(std::make_unique<PlainTransform<Real>>(grids));
  backend.products.push_back(std::make_unique<PlainProduct<Real>>());
}

}  // namespace

SpectralBackend plain_backend(const std::vector<FrequencyGrid>& grids, const std::vector<SpectrumStorage>& storages) {
  SpectralBackend backend{"plain", "", {}, {}};
  for (const SpectrumStorage storage : storages)
    storage == SpectrumStorage::interleaved ? add_plain<float>(backend, grids) : add_plain<double>(backend, grids);
  return backend;
}

}  // namespace twiddle
