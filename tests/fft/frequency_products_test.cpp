// Products of the engines fbfft and cufft as they run on a GPU. gemm_block_test.cpp runs the blocks of Twiddle's
// products on the CPU.
#include <gtest/gtest.h>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/copy_of.h"
#include "tests/support/noise.h"
#include "tests/support/on_gpu.h"
#include "tests/support/plain_backend.h"

namespace twiddle {
namespace {

FrequencyGemm forward(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {bins, m, n, k, false, false, true, true, false};
}
FrequencyGemm backward_input(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {bins, m, n, k, false, false, false, false, false};
}
FrequencyGemm backward_weight(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  return {bins, m, n, k, true, true, false, false, accumulate};
}

class FrequencyProducts : public OnGpu {
 protected:
  void expect_products(const FrequencyGemm& gemm);

 private:
  SpectralBackend backend_ = fbfft();
};

void FrequencyProducts::expect_products(const FrequencyGemm& gemm) {
  Context host;
  const SpectralBackend plain = plain_backend({}, {SpectrumStorage::interleaved});
  const std::int64_t floats = 2 * gemm.bins * gemm.groups;
  const std::vector<float> a = noise(floats * gemm.m * gemm.k, 1), b = noise(floats * gemm.k * gemm.n, 2);
  std::vector<float> expected = noise(floats * gemm.m * gemm.n, 3);
  const Tensor before = gemm.accumulate ? on_device(expected) : poisoned(expected.size() * sizeof(float));
  plain.products.front()->run(host, gemm, a.data(), b.data(), expected.data(), nullptr);
  const Tensor left = on_device(a), right = on_device(b);
  int tried = 0;
  for (const auto& product : backend_.products) {
    if (product->storage() != SpectrumStorage::interleaved || !product->supports(gemm)) continue;
    ++tried;
    SCOPED_TRACE(join(product->name(), ", ", gemm.bins, " bins of ", gemm.groups, " groups of ", gemm.m, "x", gemm.n,
                      "x", gemm.k));
    Tensor scratch = poisoned(product->scratch_bytes(gemm)), result = copy_of(stream(), before);
    const auto run = [&] { product->run(*ctx, gemm, left.read(), right.read(), result.write(), scratch.write()); };
    run();
    const std::vector<float> actual = on_host(result);
    const std::string_view name = product->name();
    const bool is_fp16 = name.starts_with("pairs") || name.starts_with("halves");
    const bool ours = name.starts_with("tiles") || is_fp16 || name == "channels";
    const double sums_lose = ours || gemm.k < 1000 ? 1e-6 : promise(Precision::fp32);
    const double promised = product->keeps_fp32() ? sums_lose : promise(Precision::tf32);
    EXPECT_LE(relative_error(actual, expected), promised);
    if (gemm.bins > 1000) continue;
    const auto graph = stream().capture(run);
    ASSERT_NE(graph, nullptr);
    stream().copy(result.write(), before.read(), before.bytes());
    graph->replay();
    const std::vector<float> replayed = on_host(result);
    EXPECT_LE(relative_error(replayed, expected), promised) << "replayed";
    EXPECT_TRUE(!ours || replayed == actual) << "the order of a sum is fixed";
  }
  EXPECT_GT(tried, 0);
}

TEST_F(FrequencyProducts, MatchDefinition) {
  expect_products(forward(40, 5, 7, 3));
  expect_products(forward(34, 200, 96, 3));
  expect_products(forward(9, 130, 131, 65));
  expect_products(backward_input(33, 64, 33, 40));
  expect_products(backward_input(18, 300, 3, 96));
  expect_products(backward_weight(20, 6, 9, 130, true));
  expect_products(backward_weight(300, 64, 64, 20, false));
  expect_products(forward(65541, 2, 1, 3));
}

// "pairs" and "halves" need 32 channels of each and even rows; the last three cases use the largest tiles of "halves".
TEST_F(FrequencyProducts, MatchDefinitionOnTensorCores) {
  expect_products(forward(9, 130, 131, 66));
  expect_products(forward(300, 33, 65, 32));
  expect_products(backward_input(20, 130, 66, 34));
  expect_products(backward_input(5, 64, 260, 64));
  expect_products(backward_weight(9, 130, 66, 33, false));
  expect_products(backward_weight(9, 34, 260, 47, true));
  expect_products(forward(17, 250, 201, 34));
  expect_products(backward_input(17, 200, 250, 70));
  expect_products(backward_weight(17, 250, 200, 47, true));
}

FrequencyGemm in_groups(FrequencyGemm gemm, std::int64_t groups) {
  gemm.groups = groups;
  return gemm;
}

TEST_F(FrequencyProducts, MatchDefinitionInGroups) {
  for (const std::int64_t groups : {2, 17}) {
    expect_products(in_groups(forward(9, 30, 7, 33), groups));
    expect_products(in_groups(backward_input(9, 30, 34, 8), groups));
    expect_products(in_groups(backward_weight(9, 6, 9, 130, true), groups));
    expect_products(in_groups(backward_weight(2, 6, 4, 3000, false), groups));  // several parts
    expect_products(in_groups(forward(20, 40, 34, 36), groups));
    expect_products(in_groups(backward_input(20, 40, 34, 36), groups));
    expect_products(in_groups(backward_weight(2, 36, 34, 3000, true), groups));
  }
}

TEST_F(FrequencyProducts, MatchDefinitionIfDepthwise) {
  for (const std::int64_t groups : {3, 32, 77}) {
    expect_products(in_groups(forward(40, 21, 1, 1), groups));
    expect_products(in_groups(backward_input(40, 21, 1, 1), groups));
    expect_products(in_groups(backward_weight(40, 1, 1, 130, false), groups));
    expect_products(in_groups(backward_weight(2, 1, 1, 20000, true), groups));  // several parts
  }
}

TEST_F(FrequencyProducts, SumManyTermsInParts) {
  expect_products(backward_weight(10, 33, 34, 3000, false));
  expect_products(backward_weight(10, 34, 66, 3000, true));
  expect_products(backward_weight(2, 96, 3, 20000, true));
  expect_products(backward_weight(1, 8, 8, 100000, false));
}

TEST_F(FrequencyProducts, MeetErrorLimitForLongSums) {
  expect_products(forward(3, 4, 6, 9001));
  expect_products(backward_input(3, 4, 6, 9001));
  expect_products(backward_weight(2, 8, 8, 9001, true));
  expect_products(backward_weight(2, 8, 8, 1000000, false));
}

}  // namespace
}  // namespace twiddle
