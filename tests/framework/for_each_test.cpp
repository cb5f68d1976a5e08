#include "framework/for_each.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <vector>

namespace twiddle {
namespace {

struct CountVisits {
  int* visits;
  void operator()(std::int64_t i) const { ++visits[i]; }
};

struct Fractions {
  std::int64_t columns;
  double* sums;
  float term(std::int64_t row, std::int64_t column) const {
    return 1.0f / static_cast<float>(row * columns + column + 1);
  }
  void store(std::int64_t row, double sum) const { sums[row] = sum; }
};

TEST(ForEachIndex, VisitsEveryIndexOnce) {
  const auto stream = make_stream({});
  for (const std::int64_t count : {0, 1, 17, 100000}) {
    std::vector<int> visits(static_cast<std::size_t>(count), 0);
    for_each_index(*stream, count, CountVisits{visits.data()});
    EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(count), 1));
  }
}

TEST(ReduceRows, SumsAsADoubleSumWould) {
  const auto stream = make_stream({});
  for (const std::int64_t columns : {1, 15, 16, 511, 513, 5000}) {
    std::vector<double> sums(3);
    const Fractions fractions{columns, sums.data()};
    reduce_rows(*stream, 3, columns, fractions);
    for (std::int64_t row = 0; row < 3; ++row) {
      double expected = 0;
      for (std::int64_t column = 0; column < columns; ++column) expected += fractions.term(row, column);
      EXPECT_NEAR(sums[static_cast<std::size_t>(row)], expected, 1e-6 * expected) << columns << " columns";
    }
  }
}

TEST(ReduceRows, GivesTheSameBitsWhateverTheThreadCount) {
  const auto stream = make_stream({});
  const auto summed = [&](int threads) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    std::vector<double> sums(64);
    reduce_rows(*stream, 64, 1000, Fractions{1000, sums.data()});
    omp_set_num_threads(before);
    return sums;
  };
  EXPECT_EQ(summed(1), summed(3));
}

}  // namespace
}  // namespace twiddle
