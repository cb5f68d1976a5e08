#include "framework/sum_pairs.h"

#include <gtest/gtest.h>

#include <vector>

namespace twiddle {
namespace {

// Terms of both signs that nearly cancel in the first sum, and of one sign in the second.
struct Terms {
  std::int64_t columns;
  PairOf<double>* sums;
  struct Row {
    std::int64_t first;
    PairOf<float> operator()(std::int64_t column) const {
      const float size = 1.0f / static_cast<float>(first + column + 1);
      return {column % 2 == 0 ? size : -size, size};
    }
  };
  Row row(std::int64_t row) const { return {row * columns}; }
  void store(std::int64_t row, const PairOf<double>& both) const { sums[row] = both; }
};

TEST(SumPairs, MatchesSumsInDouble) {
  const auto stream = make_stream({});
  for (const std::int64_t columns : {0, 1, 15, 16, 511, 513, 5000}) {
    std::vector<PairOf<double>> sums(3);
    const Terms terms{columns, sums.data()};
    sum_pairs_of_rows(*stream, 3, columns, terms);
    for (std::int64_t row = 0; row < 3; ++row) {
      PairOf<double> expected{0, 0};
      for (std::int64_t column = 0; column < columns; ++column) {
        const PairOf<float> term = terms.row(row)(column);
        expected.first += term.first, expected.second += term.second;
      }
      const PairOf<double> found = sums[static_cast<std::size_t>(row)];
      EXPECT_NEAR(found.first, expected.first, 1e-6 * expected.second) << columns << " columns";
      EXPECT_NEAR(found.second, expected.second, 1e-6 * expected.second) << columns << " columns";
    }
  }
}

}  // namespace
}  // namespace twiddle
