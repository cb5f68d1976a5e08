#include "framework/for_each_in_rows.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <string>
#include <vector>

#include "framework/error.h"
#include "tests/support/forwarding_stream.h"

namespace twiddle {
namespace {

struct CountVisits {
  int* visits;
  void operator()(std::int64_t i) const { ++visits[i]; }
};

struct CountVisitsInRows {
  std::int64_t columns;
  int* visits;
  CountVisits row(std::int64_t row) const { return {visits + row * columns}; }
};

struct Fractions {
  std::int64_t columns;
  double* sums;
  float term(std::int64_t row, std::int64_t column) const {
    return 1.0f / static_cast<float>(row * columns + column + 1);
  }
  void store(std::int64_t row, double sum) const { sums[row] = sum; }
};

struct RowTimesTen {
  struct Row {
    float ten_rows;
    float operator()(std::int64_t column, float x) const { return ten_rows + static_cast<float>(column) + x; }
  };
  Row row(std::int64_t row) const { return {10 * static_cast<float>(row)}; }
};

struct Negate {
  float operator()(float x) const { return -x; }
};

struct Largest {
  std::int64_t columns;
  const float* x;
  float* largest;
  float start() const { return -1; }
  float term(std::int64_t row, std::int64_t column) const { return x[row * columns + column]; }
  float join(float a, float b) const { return a > b ? a : b; }
  void store(std::int64_t row, float value) const { largest[row] = value; }
};

// A stream whose memory no loop in this file may access, since only g++ compiles it.
struct GpuStream : ForwardingStream {
  GpuStream() : ForwardingStream(make_stream({})) {}
  Device device() const override { return {Device::Kind::cuda, 1}; }
};

void expect_refused(const std::string& loop, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << loop << " ran on the host over a GPU's memory";
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const std::string& part : {loop, std::string("cuda:1"), std::string(".cpp to .cu")})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(ForEach, RefusesGpuIfCompiledForHost) {
  GpuStream gpu;
  int visits[1] = {};
  float out[1] = {};
  double sums[1] = {};
  const float in[1] = {};
  expect_refused("CountVisits", [&] { for_each_index(gpu, 1, CountVisits{visits}); });
  expect_refused("CountVisitsInRows", [&] { for_each_in_rows(gpu, 1, 1, CountVisitsInRows{1, visits}); });
  expect_refused("Negate", [&] { map_elements(gpu, 1, Negate{}, 1, out, in); });
  expect_refused("RowTimesTen", [&] { map_rows(gpu, 1, 1, RowTimesTen{}, 1, out, in); });
  expect_refused("reduce_rows", [&] { reduce_rows(gpu, 1, 1, Fractions{1, sums}); });
  expect_refused("reduce_columns", [&] { reduce_columns(gpu, 1, 1, Fractions{1, sums}); });
  expect_refused("map_and_sum_rows", [&] { map_and_sum_rows(gpu, 1, 1, Negate{}, out, out, in); });
  expect_refused("Largest", [&] { fold_rows(gpu, 1, 1, Largest{1, in, out}); });
  EXPECT_EQ(visits[0], 0);
}

TEST(Divisor, MatchesIntegerDivision) {
  const std::int64_t limit = std::int64_t(1) << 31;
  for (const std::int64_t divisor :
       {std::int64_t(1), std::int64_t(2), std::int64_t(3), std::int64_t(7), std::int64_t(55), std::int64_t(3025),
        std::int64_t(65537), limit / 2 + 1, limit - 1, limit, limit * 5}) {
    const Divisor by(divisor);
    for (const std::int64_t index : {std::int64_t(0), std::int64_t(1), divisor - 1, divisor, divisor + 1,
                                     7 * divisor - 1, 7 * divisor, limit - 2, limit - 1, limit, limit * limit / 2}) {
      EXPECT_EQ(by.quotient(index), index / divisor) << index << " / " << divisor;
      EXPECT_EQ(by.remainder(index), index % divisor) << index << " % " << divisor;
      if (index < limit) {
        EXPECT_EQ(by.quotient32(static_cast<int>(index)), index / divisor) << index << " / " << divisor;
      }
    }
  }
}

TEST(MapElements, MapsInPlaceAcrossBlocks) {
  const auto stream = make_stream({});
  for (const std::int64_t count : {0, 1, 5, 4096, 10001}) {
    std::vector<float> x(static_cast<std::size_t>(count), 2);
    map_elements(*stream, count, Negate{}, 1, x.data(), x.data());
    EXPECT_EQ(x, std::vector<float>(static_cast<std::size_t>(count), -2));
  }
}

TEST(MapRows, MapsEachRow) {
  const auto stream = make_stream({});
  const std::vector<float> x{0, 0.5f, 0, 0, 0, 0.25f};
  std::vector<float> y(6);
  map_rows(*stream, 2, 3, RowTimesTen{}, 1, y.data(), x.data());
  EXPECT_EQ(y, (std::vector<float>{0, 1.5f, 2, 10, 11, 12.25f}));
}

TEST(ReduceColumns, SumsColumns) {
  const auto stream = make_stream({});
  std::vector<double> sums(5);
  const Fractions fractions{5, sums.data()};
  reduce_columns(*stream, 100, 5, fractions);
  for (std::int64_t column = 0; column < 5; ++column) {
    double expected = 0;
    for (std::int64_t row = 0; row < 100; ++row) expected += fractions.term(row, column);
    EXPECT_NEAR(sums[static_cast<std::size_t>(column)], expected, 1e-9);
  }
}

TEST(FoldRows, AppliesGivenOperation) {
  const auto stream = make_stream({});
  const std::vector<float> x{1, 5, 2, 7, 3, 0};
  std::vector<float> largest(2);
  fold_rows(*stream, 2, 3, Largest{3, x.data(), largest.data()});
  EXPECT_EQ(largest, (std::vector<float>{5, 7}));
}

TEST(ForEachIndex, VisitsEveryIndexOnce) {
  const auto stream = make_stream({});
  for (const std::int64_t count : {0, 1, 17, 100000}) {
    std::vector<int> visits(static_cast<std::size_t>(count), 0);
    for_each_index(*stream, count, CountVisits{visits.data()});
    EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(count), 1));
  }
}

TEST(ForEachInRows, VisitsEveryElementOnce) {
  const auto stream = make_stream({});
  for (const std::int64_t columns : {1, 17, 1000}) {
    std::vector<int> visits(static_cast<std::size_t>(100 * columns), 0);
    for_each_in_rows(*stream, 100, columns, CountVisitsInRows{columns, visits.data()});
    EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
  }
}

TEST(ReduceRows, MatchesSumInDouble) {
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

TEST(ReduceRows, IsBitwiseIdenticalForAnyThreads) {
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
