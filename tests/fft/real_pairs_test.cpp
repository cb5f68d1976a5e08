// Winograd's products on tensor cores, and the plans that use them.
#include <gtest/gtest.h>

#include <functional>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/limits.h"
#include "tests/support/magnitudes.h"
#include "tests/support/noise.h"
#include "tests/support/on_gpu.h"

namespace twiddle {
namespace {

FrequencyGemm real_forward(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.bins = bins, .m = m, .n = n, .k = k, .transpose_b = true};
}
FrequencyGemm real_backward_input(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.bins = bins, .m = m, .n = n, .k = k};
}
FrequencyGemm real_backward_weight(std::int64_t bins, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  return {.bins = bins, .m = m, .n = n, .k = k, .transpose_a = true, .accumulate = accumulate};
}

std::vector<float> factor(unsigned seed, std::int64_t bins, std::int64_t lines, std::int64_t k, bool along_k,
                          const Magnitude& size) {
  std::vector<float> numbers = noise(bins * lines * k, seed);
  for (std::int64_t i = 0; i < bins * lines * k; ++i) {
    const std::int64_t inner = along_k ? k : lines, row = i / inner % (along_k ? lines : k), column = i % inner;
    numbers[static_cast<std::size_t>(i)] *= static_cast<float>(along_k ? size(row, column) : size(column, row));
  }
  return numbers;
}

// C or C + A B, summed in double.
std::vector<float> expected_product(const FrequencyGemm& g, const std::vector<float>& a, const std::vector<float>& b,
                                    const std::vector<float>& before) {
  std::vector<float> c(before.size());
  std::vector<double> row(static_cast<std::size_t>(g.n));
  for (std::int64_t bin = 0; bin < g.bins; ++bin)
    for (std::int64_t i = 0; i < g.m; ++i) {
      float* const to = c.data() + (bin * g.m + i) * g.n;
      for (std::int64_t j = 0; j < g.n; ++j)
        row[static_cast<std::size_t>(j)] =
            g.accumulate ? double(before[static_cast<std::size_t>((bin * g.m + i) * g.n + j)]) : 0;
      for (std::int64_t k = 0; k < g.k; ++k) {
        const double left = a[static_cast<std::size_t>(bin * g.m * g.k + (g.transpose_a ? k * g.m + i : i * g.k + k))];
        const float* const right = b.data() + bin * g.n * g.k + (g.transpose_b ? k : k * g.n);
        for (std::int64_t j = 0; j < g.n; ++j)
          row[static_cast<std::size_t>(j)] += left * right[g.transpose_b ? j * g.k : j];
      }
      for (std::int64_t j = 0; j < g.n; ++j) to[j] = static_cast<float>(row[static_cast<std::size_t>(j)]);
    }
  return c;
}

class RealPairs : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    backend_ = winograd(ctx->stream->device());
    for (auto& product : backend_.products)
      if (product->name().starts_with("pairs")) products.push_back(product.get());
    if (products.empty()) GTEST_SKIP() << "no fp16 tensor cores";
  }

  std::vector<float> run(FrequencyProduct& product, const FrequencyGemm& gemm, const std::vector<float>& a,
                         const std::vector<float>& b, const std::vector<float>& before) {
    const Tensor left = on_device(a), right = on_device(b);
    Tensor scratch = poisoned(product.scratch_bytes(gemm)), result = on_device(before);
    product.run(*ctx, gemm, left.read(), right.read(), result.write(), scratch.write());
    return on_host(result);
  }

  void expect_product(const FrequencyGemm& gemm, const Magnitude& of_a = same_size, const Magnitude& of_b = same_size) {
    const std::vector<float> a = factor(1, gemm.bins, gemm.m, gemm.k, !gemm.transpose_a, of_a);
    const std::vector<float> b = factor(2, gemm.bins, gemm.n, gemm.k, gemm.transpose_b, of_b);
    const std::int64_t count = gemm.bins * gemm.m * gemm.n;
    const std::vector<float> before =
        gemm.accumulate ? noise(count) : std::vector<float>(static_cast<std::size_t>(count), not_a_number);
    const std::vector<float> expected = expected_product(gemm, a, b, before);
    for (FrequencyProduct* const product : products) {
      SCOPED_TRACE(join(product->name(), ", ", gemm.bins, " bins of ", gemm.m, "x", gemm.n, "x", gemm.k));
      ASSERT_TRUE(product->supports(gemm));
      const std::vector<float> actual = run(*product, gemm, a, b, before);
      EXPECT_LE(relative_error(actual, expected), 3e-7);
      for (std::int64_t row = 0; row < gemm.bins * gemm.m; ++row) {
        const auto of_row = [&](const std::vector<float>& c) {
          return std::vector<float>(c.begin() + row * gemm.n, c.begin() + (row + 1) * gemm.n);
        };
        ASSERT_LE(relative_error(of_row(actual), of_row(expected)), 1e-6) << "row " << row;
      }
      EXPECT_EQ(actual, run(*product, gemm, a, b, before)) << "the order of a sum is fixed";
    }
  }

  // Runs all plans that use split fp16.
  void expect_plans(const ConvProblem& problem, const std::function<void(const ConvPlan&, ConvPass)>& expect) {
    SpectralEngine engine(winograd(stream().device()), std::make_shared<FrequencyBuffers>(plenty), plenty);
    for (const ConvPass pass : every_pass) {
      std::size_t tried = 0;
      for (const auto& plan : engine.plans(problem, pass))
        if (plan->facts().name.find("pairs") != std::string::npos) ++tried, expect(*plan, pass);
      EXPECT_EQ(tried, 2 * products.size()) << to_string(problem);  // F(4x4) and F(2x2)
    }
  }

  std::vector<FrequencyProduct*> products;

 private:
  SpectralBackend backend_;
};

TEST_F(RealPairs, MatchDefinition) {
  expect_product(real_forward(36, 100, 130, 70));
  expect_product(real_forward(16, 130, 67, 33));
  expect_product(real_backward_input(16, 260, 66, 64));
  expect_product(real_backward_input(36, 40, 129, 35));
  expect_product(real_forward(4, 1000, 1100, 96));
  expect_product(real_backward_weight(4, 1030, 920, 100, true));
  expect_product(real_backward_weight(16, 66, 130, 200, false));
  expect_product(real_backward_weight(36, 130, 35, 77, true));
}

TEST_F(RealPairs, SplitLongSums) {
  expect_product(real_forward(2, 64, 40, 5000));
  expect_product(real_backward_weight(4, 33, 64, 9001, true));
  expect_product(real_backward_weight(16, 40, 36, 9001, false));
}

TEST_F(RealPairs, MeetErrorLimitForMixedScales) {
  for (const FrequencyGemm& gemm : {real_forward(4, 80, 96, 64), real_forward(4, 96, 80, 64),
                                    real_backward_input(4, 96, 80, 64), real_backward_weight(4, 64, 80, 96, false)}) {
    expect_product(
        gemm, [](auto, auto) { return 1e-6; }, [](auto, auto) { return 1e4; });
    expect_product(
        gemm, [](auto line, auto) { return decades(line); }, same_size);
    expect_product(
        gemm, [](auto line, auto k) { return line == 5 && k == 9 ? 1e6 : 1; }, same_size);
    if (gemm.transpose_a) continue;  // whose k are tiles of images
    expect_product(
        gemm, [](auto, auto k) { return decades(k); }, [](auto, auto k) { return 1 / decades(k); });
    expect_product(
        gemm, [](auto, auto k) { return k % 7 == 2 ? 0 : 1; }, [](auto, auto k) { return k % 7 == 2 ? 1e6 : 1; });
    expect_product(
        gemm, [](auto, auto k) { return k % 7 == 2 ? 1e6 : 1; }, [](auto, auto k) { return k % 7 == 2 ? 0 : 1; });
  }
}

TEST_F(RealPairs, RejectSmallOrGroupedProducts) {
  for (FrequencyProduct* const product : products) {
    EXPECT_FALSE(product->supports(real_forward(36, 640, 6400, 31))) << "few channels";
    EXPECT_FALSE(product->supports(real_forward(16, 32, 32, 32))) << "few products";
    FrequencyGemm in_groups = real_forward(36, 64, 64, 64);
    in_groups.groups = 2;
    EXPECT_FALSE(product->supports(in_groups));
  }
}

TEST_F(RealPairs, WinogradPlansMeetErrorLimit) {
  for (const ConvProblem& problem :
       conv_problems({"3x40x13x11 * 36x40x3x3 pad 1", "2x96x14x14 * 130x96x3x3 pad 1", "5x512x9x9 * 64x512x3x3 pad 1",
                      "33x32x12x12 * 33x32x3x3", "40x33x13x13 * 400x33x3x3"}))
    expect_plans(problem, [&](const ConvPlan& plan, ConvPass pass) {
      ConvOperands operands = random_operands(stream(), problem, pass);
      plan.run(*ctx, operands);
      const double error = conv_error(*ctx, problem, pass, operands, all_samples);
      const bool small_tiles = plan.facts().name.find("F(2x2)") != std::string::npos;
      EXPECT_LE(error, small_tiles ? 5e-7 : promise(Precision::fp32))
          << to_string(problem) << ", " << to_string(pass) << ", " << full_name(plan);
    });
}

TEST_F(RealPairs, KeepNanInItsImage) {
  const ConvProblem problem = conv_problem("5x64x14x14 * 70x64x3x3 pad 1");
  expect_plans(problem, [&](const ConvPlan& plan, ConvPass pass) {
    const PassPlaces places = places_of(problem, pass);
    ConvOperands operands = random_operands(stream(), problem, pass);
    const bool is_forward = pass == ConvPass::forward;
    Tensor& rows = is_forward ? operands.x : operands.y;
    Tensor& result = is_forward ? operands.y : pass == ConvPass::backward_input ? operands.x : operands.w;
    rows = with_nan_at(stream(), rows, places.row, 3);
    plan.run(*ctx, operands);
    EXPECT_TRUE(holds_nan(stream(), result));
    EXPECT_FALSE(holds_nan_elsewhere(stream(), result, places.result_row, 3)) << full_name(plan) << to_string(pass);
  });
}

}  // namespace
}  // namespace twiddle
