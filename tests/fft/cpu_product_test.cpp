// The CPU's complex products, for every instruction set that this processor has, against sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "fft/cpu/cpu_backend.h"
#include "tests/support/every_instruction_set.h"

namespace twiddle {
namespace {

using Number = std::complex<double>;

// One matrix a bin, as the CPU's transforms store them.
struct Bins {
  Bins(std::int64_t bins, std::int64_t matrix_rows, std::int64_t columns, int vector)
      : lanes(vector), layout(layout_of(matrix_rows, columns, vector)) {
    // A few floats more, so that the first bin can begin at a whole vector.
    floats.resize(static_cast<std::size_t>(bins * layout.bin_stride + 16));
  }
  float* data() { return floats.data() + (64 - reinterpret_cast<std::uintptr_t>(floats.data()) % 64) % 64 / 4; }
  float* at(std::int64_t bin, std::int64_t row, std::int64_t column) {
    return data() + bin * layout.bin_stride + (row * layout.blocks + column / lanes) * 2 * lanes + column % lanes;
  }
  Number number(std::int64_t bin, std::int64_t row, std::int64_t column) {
    const float* re = at(bin, row, column);
    return {re[0], re[lanes]};
  }
  int lanes;
  SpectrumLayout layout;
  std::vector<float> floats;
};

struct CpuProductTest : EveryInstructionSet {};

Bins noise(std::int64_t bins, std::int64_t rows, std::int64_t columns, int lanes) {
  static std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Bins made(bins, rows, columns, lanes);
  for (std::int64_t bin = 0; bin < bins; ++bin)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        float* re = made.at(bin, row, column);
        re[0] = normal(random), re[made.lanes] = normal(random);
      }
  return made;
}

TEST_P(CpuProductTest, IsTheSumOfProductsOfEveryForm) {
  Context ctx;
  CpuProduct product(GetParam());
  const int lanes = kernels_for(GetParam()).lanes;
  for (int form = 0; form < 32; ++form) {
    const std::int64_t m = form % 3 == 0 ? 7 : 33, n = form % 2 ? 17 : 65, k = form % 5 == 0 ? 150 : 19;
    FrequencyGemm gemm{.bins = 11, .m = m, .n = n, .k = k};
    gemm.transpose_a = form & 1, gemm.conjugate_a = form & 2, gemm.transpose_b = form & 4;
    gemm.conjugate_b = form & 8, gemm.accumulate = form & 16;
    Bins a = gemm.transpose_a ? noise(11, k, m, lanes) : noise(11, m, k, lanes);
    Bins b = gemm.transpose_b ? noise(11, n, k, lanes) : noise(11, k, n, lanes);
    Bins c = noise(11, m, n, lanes);
    std::vector<Number> before(static_cast<std::size_t>(11 * m * n));
    for (std::size_t i = 0; gemm.accumulate && i < before.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      before[i] = c.number(place / (m * n), place / n % m, place % n);
    }
    if (!gemm.accumulate) std::fill(c.floats.begin(), c.floats.end(), std::numeric_limits<float>::quiet_NaN());
    const auto scratch = ctx.stream->allocate(product.scratch_bytes(gemm));
    product.run(ctx, gemm, a.data(), b.data(), c.data(), scratch.get());
    double difference = 0, size = 0;
    for (std::int64_t bin = 0; bin < 11; ++bin)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          Number sum = before[static_cast<std::size_t>((bin * m + i) * n + j)];
          for (std::int64_t l = 0; l < k; ++l) {
            const Number left = gemm.transpose_a ? a.number(bin, l, i) : a.number(bin, i, l);
            const Number right = gemm.transpose_b ? b.number(bin, j, l) : b.number(bin, l, j);
            sum += (gemm.conjugate_a ? std::conj(left) : left) * (gemm.conjugate_b ? std::conj(right) : right);
          }
          difference += std::norm(c.number(bin, i, j) - sum), size += std::norm(sum);
        }
    EXPECT_LT(std::sqrt(difference / size), 1e-6) << "form " << form;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, CpuProductTest, every_instruction_set(), name_of_set);

}  // namespace
}  // namespace twiddle
