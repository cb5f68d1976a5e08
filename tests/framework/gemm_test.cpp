#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "framework/cpu/gemm.h"
#include "framework/random.h"
#include "framework/tensor.h"
#include "tests/support/check_close.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = RandomSequence{seed}.uniform(i) - 0.5f;
  return values;
}

std::vector<float> gemm_by_loops(const Gemm& g, const std::vector<float>& a, const std::vector<float>& b,
                                 std::vector<float> c) {
  const std::int64_t lda = g.lda ? g.lda : g.transpose_a ? g.m : g.k;
  const std::int64_t ldb = g.ldb ? g.ldb : g.transpose_b ? g.k : g.n;
  const std::int64_t ldc = g.ldc ? g.ldc : g.n;
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < g.k; ++k)
        sum += double(a.at(static_cast<std::size_t>(g.transpose_a ? k * lda + i : i * lda + k))) *
               b.at(static_cast<std::size_t>(g.transpose_b ? j * ldb + k : k * ldb + j));
      float& element = c.at(static_cast<std::size_t>(i * ldc + j));
      element = static_cast<float>(g.alpha * sum + (g.beta == 0 ? 0 : g.beta * element));
    }
  return c;
}

void expect_right(const Gemm& g) {
  const auto a = random_values(
      std::max<std::int64_t>(1, (g.transpose_a ? g.k : g.m) * std::max(g.lda, g.transpose_a ? g.m : g.k)), 1);
  const auto b = random_values(
      std::max<std::int64_t>(1, (g.transpose_b ? g.n : g.k) * std::max(g.ldb, g.transpose_b ? g.k : g.n)), 2);
  auto c = random_values(g.m * std::max(g.ldc, g.n), 3);
  if (g.beta == 0 && g.ldc == 0) c.assign(c.size(), std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> expected = gemm_by_loops(g, a, b, c);
  cpu_gemm(g, a.data(), b.data(), c.data());
  SCOPED_TRACE(testing::Message() << g.m << "x" << g.n << "x" << g.k << (g.transpose_a ? " A^T" : "")
                                  << (g.transpose_b ? " B^T" : "") << " beta " << g.beta);
  expect_close(c, expected, 2e-5f);
}

}  // namespace

TEST(Gemm, MatchesLoopsInEveryForm) {
  const std::int64_t sizes[][3] = {{1, 1, 1}, {5, 7, 3}, {12, 32, 256}, {13, 33, 257}, {100, 90, 300}, {2, 4100, 5}};
  for (const auto& [m, n, k] : sizes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const float beta : {0.0f, 1.0f, -0.5f})
          expect_right({.transpose_a = transpose_a,
                        .transpose_b = transpose_b,
                        .m = m,
                        .n = n,
                        .k = k,
                        .alpha = 1.5f,
                        .beta = beta});
}

TEST(Gemm, KeepsMemoryBetweenRows) {
  for (const bool transpose : {false, true})
    expect_right({.transpose_a = transpose,
                  .transpose_b = transpose,
                  .m = 6,
                  .n = 9,
                  .k = 11,
                  .beta = 0,
                  .lda = 15,
                  .ldb = 16,
                  .ldc = 14});
}

TEST(Gemm, ScalesCIfSumIsEmpty) {
  expect_right({.m = 3, .n = 4, .k = 0, .beta = 0});
  expect_right({.m = 3, .n = 4, .k = 0, .beta = 2});
}

TEST_P(EveryDevice, GemmScalesCIfSumIsEmpty) {
  const auto stream = make_stream(GetParam());
  Tensor c = Tensor::from(*stream, {3, 4}, std::vector<float>(12, 7));
  for (const auto& [beta, expected] : {std::pair{2.0f, 14.0f}, {0.0f, 0.0f}}) {
    stream->gemm({.m = 3, .n = 4, .k = 0, .beta = beta}, nullptr, nullptr, c.write());
    EXPECT_EQ(c.to_vector(*stream), std::vector<float>(12, expected)) << beta;
  }
}

// The error of float sums grows with the square root of their length; the convolutions' limit applies to any length.
TEST_P(EveryDevice, GemmMeetsErrorLimitForLongSums) {
  const auto stream = make_stream(GetParam());
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{8, 8, 1000000}, {1, 16, 300000}, {16, 1, 300000}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Gemm shape{.transpose_a = transpose_a, .transpose_b = transpose_b, .m = m, .n = n, .k = k, .beta = 1};
        const std::vector<float> a = random_values(m * k, 1), b = random_values(k * n, 2), c = random_values(m * n, 3);
        const Tensor on_device_a = Tensor::from(*stream, {m * k}, a);
        const Tensor on_device_b = Tensor::from(*stream, {k * n}, b);
        Tensor result = Tensor::from(*stream, {m * n}, c);
        stream->gemm(shape, on_device_a.read(), on_device_b.read(), result.write());
        EXPECT_LE(relative_error(result.to_vector(*stream), gemm_by_loops(shape, a, b, c)), 2e-6)
            << m << "x" << n << "x" << k << " transposed " << transpose_a << transpose_b;
      }
}

// Operands without elements may be null; memory outside C stays unchanged.
TEST(Gemm, DoesNothingIfProductIsEmpty) {
  std::vector<float> c(25, 7.f);
  cpu_gemm({.m = 0, .n = 5, .k = 5}, nullptr, nullptr, c.data());
  cpu_gemm({.m = 5, .n = 0, .k = 5}, nullptr, nullptr, c.data());
  EXPECT_EQ(c, std::vector<float>(25, 7.f));
}

}  // namespace twiddle
