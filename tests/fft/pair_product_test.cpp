#include "fft/pair_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "framework/tensor.h"
#include "tests/support/every_device.h"
#include "tests/support/limits.h"

namespace twiddle {

namespace {

// Two factors of a plain product, [m][k] and [k][n], as multiplied and as stored in memory.
struct Problem {
  std::int64_t m, n, k;
  bool a_along_k = true, b_along_k = true, balance = true;
  std::vector<float> a = {}, b = {};

  void fill(std::mt19937& random) {
    std::normal_distribution<float> normal;
    a.resize(static_cast<std::size_t>(m * k)), b.resize(static_cast<std::size_t>(k * n));
    for (float& value : a) value = normal(random);
    for (float& value : b) value = normal(random);
  }
  float& a_at(std::int64_t row, std::int64_t i) { return a[static_cast<std::size_t>(row * k + i)]; }
  float& b_at(std::int64_t i, std::int64_t column) { return b[static_cast<std::size_t>(i * n + column)]; }
};

std::vector<float> transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<float> turned(values.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      turned[static_cast<std::size_t>(column * rows + row)] = values[static_cast<std::size_t>(row * columns + column)];
  return turned;
}

std::vector<float> product(Stream& stream, TensorCores cores, const Problem& p) {
  const Tensor a = Tensor::from(stream, {p.m, p.k}, p.a_along_k ? p.a : transposed(p.a, p.m, p.k));
  const Tensor b = Tensor::from(stream, {p.k, p.n}, p.b_along_k ? transposed(p.b, p.k, p.n) : p.b);
  Tensor c = Tensor::filled(stream, {p.m, p.n}, not_a_number);
  run_pair_product(stream, cores,
                   {.m = p.m,
                    .n = p.n,
                    .k = p.k,
                    .a = plain_matrix(a.read(), p.a_along_k ? p.k : p.m),
                    .b = plain_matrix(b.read(), p.b_along_k ? p.k : p.n),
                    .a_along_k = p.a_along_k,
                    .b_along_k = p.b_along_k,
                    .balance = p.balance,
                    .c = plain_matrix(c.write(), p.n)});
  return c.to_vector(stream);
}

std::vector<double> expected(Problem& p) {
  std::vector<double> c(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t i = 0; i < p.k; ++i)
      for (std::int64_t column = 0; column < p.n; ++column)
        c[static_cast<std::size_t>(row * p.n + column)] += double(p.a_at(row, i)) * p.b_at(i, column);
  return c;
}

double error(const std::vector<float>& found, const std::vector<double>& wanted, std::size_t first, std::size_t step,
             std::size_t count) {
  double square = 0, norm = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = first + i * step;
    const double difference = found[at] - wanted[at];
    square += difference * difference, norm += wanted[at] * wanted[at];
  }
  return std::sqrt(square / norm);
}
double error(const std::vector<float>& found, const std::vector<double>& wanted) {
  return error(found, wanted, 0, 1, found.size());
}
// Returns the largest of the relative errors of single rows and columns.
double largest_error(const Problem& p, const std::vector<float>& found, const std::vector<double>& wanted) {
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n);
  double most = 0;
  for (std::size_t row = 0; row < m; ++row) most = std::max(most, error(found, wanted, row * n, 1, n));
  for (std::size_t column = 0; column < n; ++column) most = std::max(most, error(found, wanted, column, n, m));
  return most;
}

// One test per kind of tensor core that the device has.
class PairProductTest : public EveryDevice {
 protected:
  void SetUp() override {
    EveryDevice::SetUp();
    if (IsSkipped()) return;
    cores_ = tensor_cores(GetParam());
    if (cores_.empty()) GTEST_SKIP() << "no tensor cores";
    stream_ = make_stream(GetParam());
  }
  std::vector<TensorCores> cores_;
  std::unique_ptr<Stream> stream_;
  std::mt19937 random_{1};
};

}  // namespace

TEST_P(PairProductTest, AgreesWithDoubleInEveryLayout) {
  std::uniform_int_distribution<int> side(1, 300), length(1, 700);
  for (int round = 0; round < 12; ++round)
    for (const bool a_along_k : {true, false})
      for (const bool b_along_k : {true, false}) {
        Problem p{side(random_), side(random_), length(random_), a_along_k, b_along_k, round % 3 > 0};
        if (round % 2 == 0) p.m = p.m / 4 * 4 + 4, p.n = p.n / 4 * 4 + 4, p.k = p.k / 4 * 4 + 4;
        p.fill(random_);
        const std::vector<double> wanted = expected(p);
        for (const TensorCores cores : cores_)
          EXPECT_LE(error(product(*stream_, cores, p), wanted), 1e-6)
              << p.m << " x " << p.n << " x " << p.k << (a_along_k ? "" : ", A by columns")
              << (b_along_k ? "" : ", B by rows") << (cores == TensorCores::mma ? ", mma" : ", wgmma");
      }
}

// Checks the epilogue for any layout and any split-K: C + A B + bias, and max(0, that).
TEST_P(PairProductTest, AppliesAccumulationBiasAndReluEpilogue) {
  constexpr std::int64_t batch = 3;
  int number = 0;
  for (const std::int64_t k : {70, 1500})
    for (const bool transpose : {false, true})
      for (const bool of_columns : {false, true})
        for (const bool add : {false, true}) {
          Problem p{130 + number, 70, k};
          std::vector<float> a, b, before(static_cast<std::size_t>(batch * p.m * p.n), add ? 3.0f : not_a_number);
          std::vector<float> bias(static_cast<std::size_t>(of_columns ? p.n : p.m));
          for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 7) - 3;
          std::vector<double> wanted;
          const bool relu = number % 3 > 0, biased = number % 4 > 0;
          for (std::int64_t i = 0; i < batch; ++i) {
            p.fill(random_);
            const std::vector<float> b_by_columns = transposed(p.b, p.k, p.n);
            a.insert(a.end(), p.a.begin(), p.a.end()), b.insert(b.end(), b_by_columns.begin(), b_by_columns.end());
            std::vector<double> c = expected(p);
            for (std::size_t at = 0; at < c.size(); ++at) {
              const std::size_t row = at / static_cast<std::size_t>(p.n), column = at % static_cast<std::size_t>(p.n);
              c[at] += (add ? 3 : 0) + (biased ? double(bias[of_columns ? column : row]) : 0);
              if (relu) c[at] = std::max(c[at], 0.0);
            }
            wanted.insert(wanted.end(), c.begin(), c.end());
          }
          const Tensor left = Tensor::from(*stream_, {batch, p.m, p.k}, a);
          const Tensor right = Tensor::from(*stream_, {batch, p.n, p.k}, b);
          const Tensor biases = Tensor::from(*stream_, {static_cast<std::int64_t>(bias.size())}, bias);
          for (const TensorCores cores : cores_) {
            Tensor c = Tensor::from(*stream_, {batch, p.m, p.n}, before);
            run_pair_product(*stream_, cores,
                             {.m = p.m,
                              .n = p.n,
                              .k = p.k,
                              .a = plain_matrix(left.read(), p.k),
                              .b = plain_matrix(right.read(), p.k),
                              .c = plain_matrix(c.write(), transpose ? p.m : p.n),
                              .transpose_c = transpose,
                              .add = add,
                              .bias = biased ? biases.read() : nullptr,
                              .bias_of_columns = of_columns,
                              .relu = relu,
                              .batch = batch,
                              .a_step = p.m * p.k,
                              .b_step = p.k * p.n,
                              .c_step = p.m * p.n});
            std::vector<float> found = c.to_vector(*stream_);
            if (transpose)
              for (std::int64_t i = 0; i < batch; ++i) {
                const auto first = found.begin() + i * p.m * p.n;
                const std::vector<float> turned = transposed({first, first + p.m * p.n}, p.n, p.m);
                std::copy(turned.begin(), turned.end(), first);
              }
            EXPECT_LE(error(found, wanted), 1e-6) << p.m << " rows, " << k << (transpose ? ", transposed" : "");
          }
          ++number;
        }
}

// Scales of a large A's columns are sampled from some rows, or from all rows if the sample is zero.
TEST_P(PairProductTest, ScalesColumnsThatAreMostlyZero) {
  for (const bool a_along_k : {true, false}) {
    Problem p{1100, 40, 64, a_along_k};
    p.fill(random_);
    for (std::int64_t i = 0; i < p.k; i += 3) {
      for (std::int64_t row = 0; row < p.m; ++row) p.a_at(row, i) *= row == 7 || row == 517 ? 1e6f : 0;
      for (std::int64_t column = 0; column < p.n; ++column) p.b_at(i, column) *= 1e-6f;
    }
    const std::vector<double> wanted = expected(p);
    for (const TensorCores cores : cores_) EXPECT_LE(largest_error(p, product(*stream_, cores, p), wanted), 2e-6);
  }
}

// A has enough tiles that both factors are split before the product.
TEST_P(PairProductTest, SplitsBothFactorsOfLargeMatrices) {
  std::uniform_int_distribution<int> rows(900, 1200), columns(1, 200), length(1, 300);
  for (int round = 0; round < 6; ++round)
    for (const bool b_along_k : {true, false}) {
      Problem p{rows(random_), columns(random_), length(random_), round % 2 == 0, b_along_k};
      p.fill(random_);
      for (std::int64_t i = 0; i < p.k; i += 3) {  // and what is divided by in A is multiplied by in B
        for (std::int64_t row = 0; row < p.m; ++row) p.a_at(row, i) *= 1e5f;
        for (std::int64_t column = 0; column < p.n; ++column) p.b_at(i, column) *= 1e-5f;
      }
      const std::vector<double> wanted = expected(p);
      for (const TensorCores cores : cores_)
        EXPECT_LE(error(product(*stream_, cores, p), wanted), 1e-6) << p.m << " x " << p.n << " x " << p.k;
    }
}

// As in a linear layer: one block computes some tiles of C, several blocks others.
TEST_P(PairProductTest, MultipliesFewRowsByLargeMatrix) {
  int number = 0;
  for (const std::int64_t m : {1, 64, 65, 128, 200, 256})
    for (const bool b_along_k : {true, false}) {
      Problem p{m, number % 2 == 0 ? 20000 / m / 4 * 4 + 300 : 700, number % 3 == 0 ? 128 : 1004, true, b_along_k};
      ++number;
      p.fill(random_);
      const std::vector<double> wanted = expected(p);
      for (const TensorCores cores : cores_) {
        const std::vector<float> first = product(*stream_, cores, p);
        EXPECT_LE(error(first, wanted), 1e-6) << p.m << " x " << p.n << " x " << p.k;
        EXPECT_EQ(first, product(*stream_, cores, p)) << p.m << " x " << p.n << " x " << p.k;
      }
    }
}

TEST_P(PairProductTest, FewRowsGetBiasAndRelu) {
  for (const std::int64_t n : {520, 20000})
    for (const bool of_columns : {false, true}) {
      Problem p{66, n, 132};
      p.fill(random_);
      std::vector<float> bias(static_cast<std::size_t>(of_columns ? p.n : p.m));
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 7) - 3;
      std::vector<double> wanted = expected(p);
      for (std::size_t at = 0; at < wanted.size(); ++at) {
        const std::size_t row = at / static_cast<std::size_t>(p.n), column = at % static_cast<std::size_t>(p.n);
        wanted[at] = std::max(wanted[at] + double(bias[of_columns ? column : row]), 0.0);
      }
      const Tensor a = Tensor::from(*stream_, {p.m, p.k}, p.a);
      const Tensor b = Tensor::from(*stream_, {p.n, p.k}, transposed(p.b, p.k, p.n));
      const Tensor biases = Tensor::from(*stream_, {static_cast<std::int64_t>(bias.size())}, bias);
      for (const TensorCores cores : cores_) {
        Tensor c = Tensor::filled(*stream_, {p.m, p.n}, not_a_number);
        run_pair_product(*stream_, cores,
                         {.m = p.m,
                          .n = p.n,
                          .k = p.k,
                          .a = plain_matrix(a.read(), p.k),
                          .b = plain_matrix(b.read(), p.k),
                          .c = plain_matrix(c.write(), p.n),
                          .bias = biases.read(),
                          .bias_of_columns = of_columns,
                          .relu = true});
        EXPECT_LE(error(c.to_vector(*stream_), wanted), 1e-6) << n << (of_columns ? ", of columns" : ", of rows");
      }
    }
}

// The weight gradient of a linear layer, as stored and transposed.
TEST_P(PairProductTest, MultipliesLargeMatricesWithSmallK) {
  for (const std::int64_t k : {40, 64, 100, 128})
    for (const bool transpose : {false, true}) {
      Problem p{1100, 1204, k, false, false};
      p.fill(random_);
      for (std::int64_t i = 0; i < p.k; i += 3) {  // and what is divided by in A is multiplied by in B
        for (std::int64_t row = 0; row < p.m; ++row) p.a_at(row, i) *= 1e5f;
        for (std::int64_t column = 0; column < p.n; ++column) p.b_at(i, column) *= 1e-5f;
      }
      const std::vector<double> wanted = expected(p);
      const Tensor a = Tensor::from(*stream_, {p.k, p.m}, transposed(p.a, p.m, p.k));
      const Tensor b = Tensor::from(*stream_, {p.k, p.n}, p.b);
      for (const TensorCores cores : cores_) {
        const auto found = [&] {
          Tensor c = Tensor::filled(*stream_, {p.m, p.n}, not_a_number);
          run_pair_product(*stream_, cores,
                           {.m = p.m,
                            .n = p.n,
                            .k = p.k,
                            .a = plain_matrix(a.read(), p.m),
                            .b = plain_matrix(b.read(), p.n),
                            .a_along_k = false,
                            .b_along_k = false,
                            .c = plain_matrix(c.write(), transpose ? p.m : p.n),
                            .transpose_c = transpose});
          const std::vector<float> values = c.to_vector(*stream_);
          return transpose ? transposed(values, p.n, p.m) : values;
        };
        const std::vector<float> first = found();
        EXPECT_LE(largest_error(p, first, wanted), 2e-6) << k << (transpose ? ", transposed" : "");
        EXPECT_EQ(first, found()) << k << (transpose ? ", transposed" : "");
      }
    }
}

TEST_P(PairProductTest, SplitKIsBitwiseReproducible) {
  for (const std::int64_t m : {70, 1000}) {
    Problem p{m, 40, 20000};
    p.fill(random_);
    const std::vector<double> wanted = expected(p);
    for (const TensorCores cores : cores_) {
      const std::vector<float> first = product(*stream_, cores, p);
      EXPECT_LE(error(first, wanted), 1e-6);
      EXPECT_EQ(first, product(*stream_, cores, p));
    }
  }
}

// Magnitudes at which fp16 without scales would overflow or underflow: each row and column meets the error limit
// relative to its own norm.
TEST_P(PairProductTest, MeetsErrorLimitInHardRanges) {
  std::uniform_real_distribution<float> decades(-3, 3);
  const auto far_apart = [&] { return std::pow(10.0f, decades(random_)); };
  const auto expect_class = [&](const char* what, double most, const auto& change) {
    Problem p{96, 80, 160};
    p.fill(random_);
    change(p);
    const std::vector<double> wanted = expected(p);
    for (const TensorCores cores : cores_)
      EXPECT_LE(largest_error(p, product(*stream_, cores, p), wanted), most) << what;
  };
  expect_class("small and large numbers", 2e-6, [&](Problem& p) {
    for (float& value : p.a) value *= 1e-30f;
    for (float& value : p.b) value *= 1e25f;
  });
  expect_class("rows of B apart, and columns of A transposed", 2e-6, [&](Problem& p) {
    for (std::int64_t i = 0; i < p.k; ++i) {
      const float factor = far_apart();
      for (std::int64_t column = 0; column < p.n; ++column) p.b_at(i, column) *= factor;
      for (std::int64_t row = 0; row < p.m; ++row) p.a_at(row, i) /= factor;
    }
  });
  expect_class("columns of B apart", 2e-6, [&](Problem& p) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      const float factor = far_apart();
      for (std::int64_t i = 0; i < p.k; ++i) p.b_at(i, column) *= factor;
    }
  });
  expect_class("rows of A apart", 2e-6, [&](Problem& p) {
    for (std::int64_t row = 0; row < p.m; ++row) {
      const float factor = far_apart();
      for (std::int64_t i = 0; i < p.k; ++i) p.a_at(row, i) *= factor;
    }
  });
  expect_class("one number of A a million times larger", 2e-6, [&](Problem& p) { p.a_at(5, 7) *= 1e6f; });
  expect_class("one number of B a million times larger", 2e-6, [&](Problem& p) { p.b_at(7, 5) *= 1e6f; });
  expect_class("a row of B a million times larger that is multiplied with zeros", 2e-6, [&](Problem& p) {
    for (std::int64_t column = 0; column < p.n; ++column) p.b_at(7, column) *= 1e6f;
    for (std::int64_t row = 0; row < p.m; ++row) p.a_at(row, 7) = 0;
  });
}

TEST_P(PairProductTest, KeepsNonFiniteInItsRow) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const auto& [m, n, k, other] :
       {std::tuple(40, 50, 96, not_a_number), std::tuple(40, 50, 96, infinite), std::tuple(40, 600, 300, not_a_number),
        std::tuple(40, 600, 300, infinite), std::tuple(1000, 1100, 64, not_a_number)}) {
    Problem p{m, n, k};
    p.fill(random_);
    const std::vector<double> wanted = expected(p);
    p.a_at(3, 10) = other, p.b_at(20, 7) = other;
    for (const TensorCores cores : cores_) {
      const std::vector<float> found = product(*stream_, cores, p);
      for (std::int64_t row = 0; row < p.m; ++row)
        for (std::int64_t column = 0; column < p.n; ++column) {
          const auto at = static_cast<std::size_t>(row * p.n + column);
          if (row == 3 || column == 7)
            EXPECT_FALSE(std::isfinite(found[at])) << row << ", " << column;
          else
            EXPECT_NEAR(found[at], wanted[at], 1e-4) << row << ", " << column;
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, PairProductTest, testing::Values(Device{Device::Kind::cuda, 0}),
                         [](const auto&) { return "cuda"; });

}  // namespace twiddle
