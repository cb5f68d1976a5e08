#include "tests/support/packed_bins.h"

namespace twiddle {

std::vector<float> packed_bins(const std::vector<std::complex<double>>& half, int height, int width,
                               std::int64_t pitch) {
  std::vector<float> floats;
  const auto add = [&](int row, int column) {
    const bool mirrored = column > width / 2;
    const int i = mirrored ? (height - row) % height : row, j = mirrored ? width - column : column;
    for (std::int64_t plane = 0; plane < pitch; ++plane) {
      const std::complex<double> value = half[static_cast<std::size_t>((i * (width / 2 + 1) + j) * pitch + plane)];
      floats.push_back(static_cast<float>(value.real()));
      floats.push_back(static_cast<float>(mirrored ? -value.imag() : value.imag()));
    }
  };
  for (const int row : {0, height / 2})
    for (int column = 0; column <= width / 2; ++column) add(row, column);
  for (int row = 1; row < height / 2; ++row)
    for (int column = 0; column < width; ++column) add(row, column);
  return floats;
}

}  // namespace twiddle
