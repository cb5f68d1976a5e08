// The products of the engine fbfft as they run on a GPU: complex_gemm_test.cpp follows the blocks of its own ones on
// the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <random>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/plain_backend.h"

namespace twiddle {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> noise(std::int64_t count) {
  static std::mt19937 random(13);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::complex<double>> numbers_of(const std::vector<float>& floats) {
  std::vector<std::complex<double>> numbers;
  for (std::size_t i = 0; i < floats.size(); i += 2) numbers.emplace_back(floats[i], floats[i + 1]);
  return numbers;
}

FrequencyGemm forward(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {bins, m, n, k, false, false, true, true, false};
}
FrequencyGemm backward_input(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {bins, m, n, k, false, false, false, false, false};
}
FrequencyGemm backward_weight(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  return {bins, m, n, k, true, true, false, false, accumulate};
}

class ComplexProducts : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no usable GPU";
    ctx = std::make_unique<Context>(Device{Device::Kind::cuda, 0});
    backend = fbfft();
  }
  std::shared_ptr<void> on_device(const std::vector<float>& values) {
    auto memory = ctx->stream->allocate(std::max<std::size_t>(values.size(), 1) * sizeof(float));
    ctx->stream->copy(memory.get(), values.data(), values.size() * sizeof(float));
    ctx->stream->synchronize();
    return memory;
  }
  std::vector<float> on_host(const void* memory, std::size_t count) {
    std::vector<float> values(count);
    ctx->stream->copy(values.data(), memory, count * sizeof(float));
    ctx->stream->synchronize();
    return values;
  }
  void expect_products(const FrequencyGemm& gemm);

  std::unique_ptr<Context> ctx;
  SpectralBackend backend;
};

void ComplexProducts::expect_products(const FrequencyGemm& gemm) {
  Context host;
  const SpectralBackend plain = plain_backend({});
  const std::vector<float> a = noise(2 * gemm.bins * gemm.m * gemm.k), b = noise(2 * gemm.bins * gemm.k * gemm.n);
  std::vector<float> before = noise(2 * gemm.bins * gemm.m * gemm.n);
  std::vector<std::complex<double>> c = numbers_of(before);
  plain.products.front()->run(host, gemm, numbers_of(a).data(), numbers_of(b).data(), c.data(), nullptr);
  std::vector<float> expected;
  for (const auto& number : c)
    expected.insert(expected.end(), {static_cast<float>(number.real()), static_cast<float>(number.imag())});
  if (!gemm.accumulate) std::fill(before.begin(), before.end(), nan);
  const auto left = on_device(a), right = on_device(b);
  for (const auto& product : backend.products) {
    SCOPED_TRACE(join(product->name(), ", ", gemm.bins, " bins of ", gemm.m, "x", gemm.n, "x", gemm.k));
    const auto scratch = on_device(std::vector<float>(product->scratch_bytes(gemm) / sizeof(float), nan));
    const auto result = on_device(before);
    const auto run = [&] { product->run(*ctx, gemm, left.get(), right.get(), result.get(), scratch.get()); };
    run();
    const std::vector<float> actual = on_host(result.get(), before.size());
    const bool ours = product->name().substr(0, 5) == "tiles";
    const double sums_lose = ours || gemm.k < 1000 ? 1e-6 : 1e-5, promised = product->keeps_fp32() ? sums_lose : 1e-3;
    EXPECT_LE(relative_error(actual, expected), promised);
    if (gemm.bins > 1000) continue;
    const auto recording = ctx->stream->record(run);
    ASSERT_NE(recording, nullptr);
    ctx->stream->copy(result.get(), before.data(), before.size() * sizeof(float));
    recording->play();
    const std::vector<float> replayed = on_host(result.get(), before.size());
    EXPECT_LE(relative_error(replayed, expected), promised) << "recorded";
    EXPECT_TRUE(!ours || replayed == actual) << "the order of a sum is fixed";
  }
}

TEST_F(ComplexProducts, AreWhatTheDefinitionSays) {
  expect_products(forward(40, 5, 7, 3));
  expect_products(forward(34, 200, 96, 3));
  expect_products(forward(9, 130, 131, 65));
  expect_products(backward_input(33, 64, 33, 40));
  expect_products(backward_input(18, 300, 3, 96));
  expect_products(backward_weight(20, 6, 9, 130, true));
  expect_products(backward_weight(300, 64, 64, 20, false));
  expect_products(forward(65541, 2, 1, 3));
}

TEST_F(ComplexProducts, SumManyNumbersInParts) {
  expect_products(backward_weight(10, 33, 34, 3000, false));
  expect_products(backward_weight(2, 96, 3, 20000, true));
  expect_products(backward_weight(1, 8, 8, 100000, false));
}

}  // namespace
}  // namespace twiddle
