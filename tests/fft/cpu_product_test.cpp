// The CPU's complex products, for every instruction set that this processor has, against sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "fft/cpu/cpu_backend.h"
#include "tests/support/every_instruction_set.h"

namespace twiddle {
namespace {

using Number = std::complex<double>;

// One matrix per bin, as the CPU's transforms store them.
struct Bins {
  Bins(std::int64_t bins, std::int64_t matrix_rows, std::int64_t columns, int vector, std::int64_t groups = 1)
      : lanes(vector), layout(layout_of(matrix_rows, columns, vector, groups)) {
    // A few more floats, so that the first bin can be aligned to a vector.
    floats.resize(static_cast<std::size_t>(bins * layout.bin_stride + 16));
  }
  float* data() { return floats.data() + (64 - reinterpret_cast<std::uintptr_t>(floats.data()) % 64) % 64 / 4; }
  float* at(std::int64_t bin, std::int64_t row, std::int64_t column) {
    const std::int64_t group = column / layout.group_columns, in_group = column % layout.group_columns;
    return data() + bin * layout.bin_stride + row * layout.row_stride() +
           (group * layout.group_blocks + in_group / lanes) * 2 * lanes + in_group % lanes;
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

Bins noise_in_lanes(std::int64_t bins, std::int64_t rows, std::int64_t columns, int lanes, std::int64_t groups = 1) {
  static std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Bins made(bins, rows, columns, lanes, groups);
  for (std::int64_t bin = 0; bin < bins; ++bin)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        float* re = made.at(bin, row, column);
        re[0] = normal(random), re[made.lanes] = normal(random);
      }
  return made;
}

TEST_P(CpuProductTest, MatchesDefinitionInEveryForm) {
  Context ctx;
  CpuProduct product(GetParam());
  const int lanes = kernels_for(GetParam()).lanes;
  for (int form = 0; form < 32; ++form) {
    const std::int64_t m = form % 3 == 0 ? 7 : 33, n = form % 2 ? 17 : 65, k = form % 5 == 0 ? 150 : 19;
    FrequencyGemm gemm{.bins = 11, .m = m, .n = n, .k = k};
    gemm.transpose_a = form & 1, gemm.conjugate_a = form & 2, gemm.transpose_b = form & 4;
    gemm.conjugate_b = form & 8, gemm.accumulate = form & 16;
    Bins a = gemm.transpose_a ? noise_in_lanes(11, k, m, lanes) : noise_in_lanes(11, m, k, lanes);
    Bins b = gemm.transpose_b ? noise_in_lanes(11, n, k, lanes) : noise_in_lanes(11, k, n, lanes);
    Bins c = noise_in_lanes(11, m, n, lanes);
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

// The three passes of a grouped convolution: forward, backward_input and backward_weight.
FrequencyGemm of_pass(int pass, std::int64_t rows, std::int64_t filters, std::int64_t channels, std::int64_t groups) {
  FrequencyGemm gemm{.bins = 11, .m = rows, .n = filters, .k = channels, .groups = groups};
  if (pass == 0) gemm.transpose_b = gemm.conjugate_b = true;
  if (pass == 1) std::swap(gemm.n, gemm.k);
  if (pass == 2) gemm.m = filters, gemm.n = channels, gemm.k = rows, gemm.transpose_a = gemm.conjugate_a = true;
  return gemm;
}

// Reads element (row, column) of a group's matrix: columns of a group are contiguous and rows are strided. Depthwise
// weights are one row.
Number element(Bins& bins, const GroupedMatrix& of, bool depthwise, std::int64_t bin, std::int64_t group,
               std::int64_t row, std::int64_t column) {
  if (depthwise || of.group_step < of.pitch) return bins.number(bin, row, group * of.columns + column);
  return bins.number(bin, group * of.rows + row, column);
}

// work(bin, group, row, column)
template <class Work>
void each_element(const FrequencyGemm& gemm, const Work& work) {
  for (std::int64_t bin = 0; bin < gemm.bins; ++bin)
    for (std::int64_t group = 0; group < gemm.groups; ++group)
      for (std::int64_t i = 0; i < gemm.m; ++i)
        for (std::int64_t j = 0; j < gemm.n; ++j) work(bin, group, i, j);
}

TEST_P(CpuProductTest, MultipliesEachGroup) {
  Context ctx;
  CpuProduct product(GetParam());
  const int lanes = kernels_for(GetParam()).lanes;
  struct {
    std::int64_t rows, filters, channels, groups;
  } shapes[] = {{7, 3, 5, 2}, {33, 17, 19, 3}, {5, 4, 1, 6}, {9, 1, 1, 37}, {150, 1, 1, 5}, {140, 2, 2, 3}};
  for (const auto& [rows, filters, channels, groups] : shapes)
    for (int form = 0; form < 6; ++form) {
      FrequencyGemm gemm = of_pass(form % 3, rows, filters, channels, groups);
      gemm.accumulate = form == 5;
      const bool depthwise = gemm.is_depthwise();
      EXPECT_EQ(depthwise, filters == 1 && channels == 1);
      const auto made = [&, all = groups](const GroupedMatrix& of) {
        if (of.group_step < of.pitch) return noise_in_lanes(11, of.rows, all * of.columns, lanes, depthwise ? 1 : all);
        return depthwise ? noise_in_lanes(11, 1, all, lanes) : noise_in_lanes(11, all * of.rows, of.columns, lanes);
      };
      Bins a = made(gemm.a()), b = made(gemm.b()), c = made(gemm.c());
      std::vector<Number> expected;
      each_element(gemm, [&](std::int64_t bin, std::int64_t group, std::int64_t i, std::int64_t j) {
        const auto at = [&](Bins& bins, const GroupedMatrix& of, std::int64_t row, std::int64_t column) {
          return element(bins, of, depthwise, bin, group, row, column);
        };
        Number sum = gemm.accumulate ? at(c, gemm.c(), i, j) : 0;
        for (std::int64_t l = 0; l < gemm.k; ++l) {
          const Number left = gemm.transpose_a ? at(a, gemm.a(), l, i) : at(a, gemm.a(), i, l);
          const Number right = gemm.transpose_b ? at(b, gemm.b(), j, l) : at(b, gemm.b(), l, j);
          sum += (gemm.conjugate_a ? std::conj(left) : left) * (gemm.conjugate_b ? std::conj(right) : right);
        }
        expected.push_back(sum);
      });
      if (!gemm.accumulate) std::fill(c.floats.begin(), c.floats.end(), std::numeric_limits<float>::quiet_NaN());
      const auto scratch = ctx.stream->allocate(product.scratch_bytes(gemm));
      product.run(ctx, gemm, a.data(), b.data(), c.data(), scratch.get());
      double difference = 0, size = 0;
      std::size_t next = 0;
      each_element(gemm, [&](std::int64_t bin, std::int64_t group, std::int64_t i, std::int64_t j) {
        difference += std::norm(element(c, gemm.c(), depthwise, bin, group, i, j) - expected[next]);
        size += std::norm(expected[next++]);
      });
      EXPECT_LT(std::sqrt(difference / size), 1e-6)
          << rows << " rows, " << groups << " groups of " << channels << " channels, form " << form;
    }
}

INSTANTIATE_TEST_SUITE_P(Sets, CpuProductTest, every_instruction_set(), name_of_set);

}  // namespace
}  // namespace twiddle
