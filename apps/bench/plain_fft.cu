#include <cmath>
#include <vector>

#include "apps/bench/batched_fft.h"
#include "framework/error.h"
#include "framework/for_each.h"

// Reference transforms by definition: a sum for each bin of a row, then a sum down each column of bins. The inverse has
// the opposite order.
namespace twiddle {

namespace {

struct Number {
  double re, im;
};
TWIDDLE_HD Number operator+(Number a, Number b) {
  return {a.re + b.re, a.im + b.im};
}
TWIDDLE_HD Number operator*(Number a, Number b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
TWIDDLE_HD Number operator*(double a, Number b) {
  return {a * b.re, a * b.im};
}
TWIDDLE_HD Number conj(Number a) {
  return {a.re, -a.im};
}

// Returns e^(-2 pi i bin element / points) from a table. The product is reduced as an integer, so that angles stay
// exact.
struct Roots {
  std::uint32_t points;
  const Number* table;
  TWIDDLE_HD Number operator()(int bin, int element) const {
    return table[std::uint32_t(bin) * std::uint32_t(element) % points];
  }
};

// Shared data of all sums. The bins of rows are stored [plane][row][column <= width / 2].
struct Sums {
  FftBatch batch;
  Roots down, across;
  Number* row_bins;
  TWIDDLE_HD int half_row() const { return batch.width / 2 + 1; }
  TWIDDLE_HD Number row_bin(std::int64_t plane, int row, int column) const {
    return row_bins[(plane * batch.height + row) * half_row() + column];
  }
  TWIDDLE_HD bool is_own_mirror(int column) const { return 2 * column % batch.width == 0; }
};

struct Place {
  std::int64_t plane;
  int row, column;
  TWIDDLE_HD Place(const Sums& sums, std::int64_t i)
      : plane(i / sums.half_row() / sums.batch.height),
        row(static_cast<int>(i / sums.half_row() % sums.batch.height)),
        column(static_cast<int>(i % sums.half_row())) {}
};

// Computes number i of the rows' bins.
struct RowForward {
  Sums sums;
  const float* planes;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const auto bin = static_cast<int>(i % sums.half_row());
    const float* const row = planes + i / sums.half_row() * sums.batch.width;
    Number sum{};
    for (int x = 0; x < sums.batch.width; ++x) sum = sum + row[x] * sums.across(bin, x);
    sums.row_bins[i] = sum;
  }
};

// Computes the bin of a plane at the position of number i of the rows' bins.
struct ColumnForward {
  Sums sums;
  float* spectra;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const Place at(sums, i);
    const BinPlace stored = bin_place(sums.batch, at.plane, at.row, at.column);
    if (stored.conjugate && sums.is_own_mirror(at.column)) return;  // its mirror bin writes this number
    Number sum{};
    for (int y = 0; y < sums.batch.height; ++y) sum = sum + sums.row_bin(at.plane, y, at.column) * sums.down(at.row, y);
    spectra[2 * stored.index] = static_cast<float>(sum.re);
    spectra[2 * stored.index + 1] = static_cast<float>(stored.conjugate ? -sum.im : sum.im);
  }
};

// Computes number i of the rows' bins from the plane's bins.
struct ColumnInverse {
  Sums sums;
  const float* spectra;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const Place at(sums, i);
    Number sum{};
    for (int bin = 0; bin < sums.batch.height; ++bin) {
      const BinPlace stored = bin_place(sums.batch, at.plane, bin, at.column);
      const Number number{spectra[2 * stored.index], spectra[2 * stored.index + 1]};
      sum = sum + (stored.conjugate ? conj(number) : number) * conj(sums.down(bin, at.row));
    }
    sums.row_bins[i] = sum;
  }
};

// Computes element i of all planes. A bin and its mirror are conjugates, so that together they add twice the real part.
struct RowInverse {
  Sums sums;
  float* planes;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const auto x = static_cast<int>(i % sums.batch.width);
    const Number* const bins = sums.row_bins + i / sums.batch.width * sums.half_row();
    double sum = 0;
    for (int bin = 0; bin < sums.half_row(); ++bin)
      sum += (sums.is_own_mirror(bin) ? 1 : 2) * (bins[bin] * conj(sums.across(bin, x))).re;
    planes[i] = static_cast<float>(sum / (double(sums.batch.height) * sums.batch.width));
  }
};

std::shared_ptr<void> table_of_roots(Stream& stream, int points) {
  std::vector<Number> roots;
  for (int k = 0; k < points; ++k) roots.push_back({std::cos(2 * M_PI * k / points), -std::sin(2 * M_PI * k / points)});
  const std::size_t bytes = roots.size() * sizeof(Number);
  std::shared_ptr<void> table = stream.allocate(bytes);
  stream.copy(table.get(), roots.data(), bytes);
  stream.synchronize();  // before the vector is destroyed
  return table;
}

class PlainFft final : public BatchedFft {
 public:
  PlainFft(Stream& stream, const FftBatch& batch)
      : BatchedFft(batch),
        stream_(stream),
        down_(table_of_roots(stream, batch.height)),
        across_(table_of_roots(stream, batch.width)),
        row_bins_(stream.allocate(static_cast<std::size_t>(count_of_row_bins()) * sizeof(Number))) {}

  void forward(const float* planes, void* spectra) override {
    for_each_index(stream_, count_of_row_bins(), RowForward{sums(), planes}, batch().width);
    for_each_index(stream_, count_of_row_bins(), ColumnForward{sums(), static_cast<float*>(spectra)}, batch().height);
  }
  void inverse(const void* spectra, float* planes) override {
    for_each_index(stream_, count_of_row_bins(), ColumnInverse{sums(), static_cast<const float*>(spectra)},
                   batch().height);
    for_each_index(stream_, batch().count * batch().height * batch().width, RowInverse{sums(), planes}, batch().width);
  }

 private:
  std::int64_t count_of_row_bins() const { return batch().count * batch().height * (batch().width / 2 + 1); }
  Sums sums() const {
    const auto roots = [](int points, const std::shared_ptr<void>& table) {
      return Roots{static_cast<std::uint32_t>(points), static_cast<const Number*>(table.get())};
    };
    return {batch(), roots(batch().height, down_), roots(batch().width, across_),
            static_cast<Number*>(row_bins_.get())};
  }

  Stream& stream_;
  std::shared_ptr<void> down_, across_, row_bins_;
};

}  // namespace

std::unique_ptr<BatchedFft> make_plain_fft(Stream& stream, const FftBatch& batch) {
  constexpr int longest = 1 << 16;  // a product of two smaller numbers fits 32 bits
  const auto is_side = [](int points) { return points > 0 && points <= longest; };
  const bool has_layout = batch.layout != BinLayout::packed || batch.height % 2 == 0;
  if (batch.count <= 0 || !is_side(batch.height) || !is_side(batch.width) || !has_layout)
    throw Error(ErrorKind::config, "there is no plain transform of " + to_string(batch));
  return std::make_unique<PlainFft>(stream, batch);
}

}  // namespace twiddle
