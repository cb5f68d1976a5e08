#include "tests/bench/plain_fft.h"

#include <cmath>

namespace twiddle {

namespace {

using Number = std::complex<double>;

std::vector<Number> roots_of_one(int points) {
  std::vector<Number> roots;
  for (int i = 0; i < points; ++i) roots.push_back(std::polar(1., -2 * M_PI * i / points));
  return roots;
}

}  // namespace

std::vector<Number> plain_spectra(const std::vector<float>& planes, int height, int width) {
  const std::vector<Number> row_roots = roots_of_one(width), column_roots = roots_of_one(height);
  const int half_row = width / 2 + 1;
  std::vector<Number> rows, spectra;
  for (std::size_t row = 0; row < planes.size(); row += static_cast<std::size_t>(width))
    for (int bin = 0; bin < half_row; ++bin) {
      Number sum = 0;
      for (int i = 0; i < width; ++i)
        sum += double(planes[row + static_cast<std::size_t>(i)]) * row_roots[static_cast<std::size_t>(bin * i % width)];
      rows.push_back(sum);
    }
  const auto plane = static_cast<std::size_t>(height * half_row);
  for (std::size_t first = 0; first < rows.size(); first += plane)
    for (int k = 0; k < height; ++k)
      for (int bin = 0; bin < half_row; ++bin) {
        Number sum = 0;
        for (int i = 0; i < height; ++i)
          sum += rows[first + static_cast<std::size_t>(i * half_row + bin)] *
                 column_roots[static_cast<std::size_t>(k * i % height)];
        spectra.push_back(sum);
      }
  return spectra;
}

double error_of_spectra(const FftBatch& batch, const std::vector<float>& numbers, const std::vector<Number>& spectra,
                        std::int64_t first) {
  const int half_row = batch.width / 2 + 1;
  const std::int64_t bins = std::int64_t(batch.height) * half_row;
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(spectra.size()); ++i) {
    const auto bin = static_cast<int>(i % bins);
    const BinPlace place = bin_place(batch, first + i / bins, bin / half_row, bin % half_row);
    const auto at = static_cast<std::size_t>(2 * place.index);
    const Number found(numbers.at(at), place.conjugate ? -numbers.at(at + 1) : numbers.at(at + 1));
    difference += std::norm(found - spectra[static_cast<std::size_t>(i)]);
    size += std::norm(spectra[static_cast<std::size_t>(i)]);
  }
  return std::sqrt(difference / size);
}

}  // namespace twiddle
