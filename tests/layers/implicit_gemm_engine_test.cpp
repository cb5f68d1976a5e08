#include "layers/conv/engines/engines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/context.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"

namespace twiddle {

namespace {

Tensor& result_of(ConvPass pass, ConvOperands& operands) {
  return pass == ConvPass::forward ? operands.y : pass == ConvPass::backward_input ? operands.x : operands.w;
}

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// Runs on a GPU with the plan of that name, in all passes that have it.
class ImplicitGemm : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no usable GPU";
    const Device gpu{Device::Kind::cuda, 0};
    engine_ = make_implicit_gemm_engine(gpu);
    if (engine_ == nullptr) GTEST_SKIP() << "no tensor cores";
    if (engine_->plan(conv_problem("2x3x16x16 * 4x3x3x3"), ConvPass::forward, GetParam()) == nullptr)
      GTEST_SKIP() << "no plan " << GetParam() << " here";
    ctx_ = std::make_unique<Context>(gpu);
  }

  Tensor& run(const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
    Tensor& result = result_of(pass, operands);
    ctx_->stream->fill(result.write(), result.size(), nan_value);
    const auto named = engine_->plan(problem, pass, GetParam());
    EXPECT_TRUE(named != nullptr || std::string_view(GetParam()) != "shifts") << to_string(problem);
    (named != nullptr ? named : first_plan(*engine_, problem, pass))->run(*ctx_, operands);
    return result;
  }
  std::vector<float> values_of(const Tensor& tensor) { return tensor.to_vector(*ctx_->stream); }

  std::unique_ptr<ConvEngine> engine_;
  std::unique_ptr<Context> ctx_;
};

bool is_shifts(const std::string& plan) {
  return plan == "shifts";
}

std::vector<ConvPass> passes_of(const std::string& plan, const ConvProblem& problem) {
  constexpr int few = 16;
  if (!is_shifts(plan) && (problem.stride_h > 1 || problem.stride_w > 1 || problem.filters > few))
    return {ConvPass::forward, ConvPass::backward_weight};
  return {std::begin(every_pass), std::end(every_pass)};
}

// Sizes and strides with partial tiles, panels, filters and taps. `shifts` is for 3x3 kernels.
std::vector<ConvProblem> problems(const std::string& plan) {
  if (is_shifts(plan))
    return conv_problems({"3x40x37x45 * 70x40x3x3 pad 1", "2x17x16x30 * 24x17x3x3", "1x64x14x14 * 130x64x3x3 pad 1",
                          "2x130x20x33 * 33x130x3x3 pad 2", "3x24x64x9 * 20x24x3x3 pad 0x1",
                          "2x5x56x56 * 6x5x3x3 pad 3x1", "1x176x17x20 * 24x176x3x3 pad 1", "1x16x10x9 * 16x16x3x3",
                          "2x100x30x24 * 64x100x3x3 pad 1"});
  return conv_problems({"3x3x37x41 * 70x3x5x5 stride 2x3 pad 1x2", "2x3x67x61 * 96x3x11x11 stride 4 pad 2",
                        "2x3x30x300 * 33x3x3x3 pad 1", "1x1x1x1 * 1x1x1x1", "5x4x9x7 * 17x4x7x5 pad 3x2",
                        "2x5x19x23 * 10x5x3x4 pad 2 dilation 2", "1x16x40x24 * 70x16x5x5 pad 2",
                        "2x15x20x20 * 48x15x3x3 pad 1", "3x16x18x18 * 16x16x3x3 pad 1",
                        "2x3x224x224 * 64x3x7x7 stride 2 pad 3"});
}

}  // namespace

TEST_P(ImplicitGemm, AgreesWithReferenceInBothPrecisions) {
  for (ConvProblem problem : problems(GetParam()))
    for (const Precision precision : {Precision::fp32, Precision::tf32})
      for (const ConvPass pass : passes_of(GetParam(), problem)) {
        problem.precision = precision;
        SCOPED_TRACE(to_string(problem) + ", " + std::string(to_string(pass)) + ", " +
                     std::string(to_string(precision)));
        ASSERT_TRUE(engine_->supports(problem, pass));
        ConvOperands operands = random_operands(*ctx_->stream, problem, pass);
        const Tensor& result = run(problem, pass, operands);
        const double allowed = (result.size() < 200 ? 3 : 1) * promise(precision);  // terms may nearly cancel
        EXPECT_LE(conv_error(*ctx_, problem, pass, operands, 3000), allowed);
      }
}

TEST_P(ImplicitGemm, IsBitwiseReproducible) {
  for (const ConvProblem& problem : problems(GetParam()))
    for (const ConvPass pass : passes_of(GetParam(), problem)) {
      ConvOperands operands = random_operands(*ctx_->stream, problem, pass);
      const std::vector<float> first = values_of(run(problem, pass, operands));
      EXPECT_EQ(first, values_of(run(problem, pass, operands))) << to_string(problem) << ", " << to_string(pass);
    }
}

TEST_P(ImplicitGemm, FusesBiasAndRelu) {
  for (const ConvProblem& problem : problems(GetParam())) {
    ConvOperands operands = random_operands(*ctx_->stream, problem, ConvPass::forward);
    std::vector<float> bias(static_cast<std::size_t>(problem.filters));
    for (std::size_t filter = 0; filter < bias.size(); ++filter)
      bias[filter] = 0.25f * static_cast<float>(filter % 7) - 1;
    operands.bias = Tensor::from(*ctx_->stream, {problem.filters}, bias);
    const Tensor& result = run(problem, ConvPass::forward, operands);
    const double allowed = (result.size() < 200 ? 3 : 1) * promise(Precision::fp32);  // terms may nearly cancel
    EXPECT_LE(conv_error(*ctx_, problem, ConvPass::forward, operands, 3000), allowed) << to_string(problem);
    std::vector<float> expected = values_of(result);
    for (float& value : expected) value = std::max(value, 0.0f);
    operands.relu = true;
    EXPECT_EQ(expected, values_of(run(problem, ConvPass::forward, operands))) << to_string(problem);
  }
}

TEST_P(ImplicitGemm, FusesBackwardOfReluAndBias) {
  if (is_shifts(GetParam())) GTEST_SKIP() << "this plan runs it as a separate pass";
  for (const ConvProblem& problem : problems(GetParam())) {
    Stream& stream = *ctx_->stream;
    ConvOperands operands = random_operands(stream, problem, ConvPass::backward_weight);
    ConvOperands masked = operands;
    masked.mask = random_operands(stream, problem, ConvPass::backward_input).y;
    masked.w = Tensor(stream, problem.weight_shape());
    masked.bias = Tensor::filled(stream, {problem.filters}, nan_value);
    const std::vector<float> found = values_of(run(problem, ConvPass::backward_weight, masked));
    const std::vector<float> bias = values_of(relu_and_bias_backward(stream, masked.mask, true, true, operands.y)),
                             of_bias = values_of(masked.bias);
    const std::vector<float> expected = values_of(run(problem, ConvPass::backward_weight, operands));
    SCOPED_TRACE(to_string(problem));
    const auto norm_of = [](const std::vector<float>& values) {
      double squares = 0;
      for (const float value : values) squares += double(value) * value;
      return std::sqrt(squares);
    };
    std::vector<float> wrong(found.size()), wrong_bias(bias.size());
    for (std::size_t i = 0; i < found.size(); ++i) wrong[i] = found[i] - expected[i];
    for (std::size_t i = 0; i < bias.size(); ++i) wrong_bias[i] = of_bias[i] - bias[i];
    EXPECT_LE(norm_of(wrong), 2e-6 * norm_of(expected));  // blocks may have other tiles
    EXPECT_LE(norm_of(wrong_bias), 2e-6 * norm_of(bias) + 1e-30);
  }
}

// Channels over twelve decades whose weights have inverse magnitudes, so that each contributes equally to the results.
TEST_P(ImplicitGemm, MeetsErrorLimitForMixedChannels) {
  const bool of_3x3 = is_shifts(GetParam());
  const ConvProblem problem = conv_problem(of_3x3 ? "3x7x20x21 * 40x7x3x3 pad 1" : "3x7x20x21 * 40x7x5x5 pad 2");
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_weight}) {
    Stream& stream = *ctx_->stream;
    ConvOperands operands = random_operands(stream, problem, pass);
    const auto scale = [&](Tensor& tensor, std::int64_t elements, float base) {
      std::vector<float> values = values_of(tensor);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] *= std::pow(base, static_cast<float>(static_cast<std::int64_t>(i) / elements % problem.channels - 3));
      tensor = Tensor::from(stream, tensor.shape(), values);
    };
    scale(operands.x, 20 * 21, 100);
    if (pass == ConvPass::forward) scale(operands.w, of_3x3 ? 3 * 3 : 5 * 5, 0.01f);
    run(problem, pass, operands);
    const double allowed = pass == ConvPass::forward ? 1 : 3;  // in gradients, each channel has a separate norm
    EXPECT_LE(conv_error(*ctx_, problem, pass, operands, std::numeric_limits<int>::max()),
              allowed * promise(Precision::fp32))
        << to_string(pass);
  }
}

// One value is a million times larger than all others: results that do not depend on it stay bitwise identical.
TEST_P(ImplicitGemm, LargeValueAffectsOnlyItsPlane) {
  const ConvProblem problem =
      conv_problem(is_shifts(GetParam()) ? "4x3x40x40 * 24x3x3x3 pad 1" : "4x3x40x40 * 24x3x5x5 pad 2");
  const auto plane = static_cast<std::size_t>(problem.filters) * 40 * 40;
  ConvOperands operands = random_operands(*ctx_->stream, problem, ConvPass::forward);
  const std::vector<float> alone = values_of(run(problem, ConvPass::forward, operands));
  std::vector<float> x = values_of(operands.x);
  x[2 * 3 * 40 * 40 + 777] *= 1e6f;
  operands.x = Tensor::from(*ctx_->stream, operands.x.shape(), x);
  const std::vector<float> together = values_of(run(problem, ConvPass::forward, operands));
  for (const std::size_t image : {0, 1, 3})
    EXPECT_TRUE(std::equal(alone.begin() + image * plane, alone.begin() + (image + 1) * plane,
                           together.begin() + image * plane));
  EXPECT_LE(conv_error(*ctx_, problem, ConvPass::forward, operands, std::numeric_limits<int>::max()), 2e-6);
}

// Each block sums several images and reads the one with large planes first, in the middle, and last.
TEST_P(ImplicitGemm, LargePlanesKeepOtherImagesAccurate) {
  const ConvProblem problem =
      conv_problem(is_shifts(GetParam()) ? "7x256x14x14 * 512x256x3x3 pad 1" : "7x3x30x30 * 64x3x5x5");
  for (const std::size_t large : {0, 3, 6}) {
    ConvOperands operands = random_operands(*ctx_->stream, problem, ConvPass::backward_weight);
    std::vector<float> x = values_of(operands.x), grad_y = values_of(operands.y);
    const std::size_t of_x = x.size() / 7, of_y = grad_y.size() / 7, plane = of_y / problem.filters;
    for (std::size_t i = large * of_x; i < (large + 1) * of_x; ++i) x[i] = 0;
    for (std::size_t i = large * of_y; i < (large + 1) * of_y; ++i)
      if (i / plane % 2 == 0) grad_y[i] *= 1e6f;
    operands.x = Tensor::from(*ctx_->stream, operands.x.shape(), x);
    operands.y = Tensor::from(*ctx_->stream, operands.y.shape(), grad_y);
    run(problem, ConvPass::backward_weight, operands);
    EXPECT_LE(conv_error(*ctx_, problem, ConvPass::backward_weight, operands, 3000), promise(Precision::fp32)) << large;
  }
}

TEST_P(ImplicitGemm, KeepsInfinityInItsImage) {
  const ConvProblem problem = conv_problem("4x20x30x30 * 70x20x3x3 pad 1");
  if (engine_->plan(problem, ConvPass::forward, GetParam()) == nullptr) GTEST_SKIP() << "too many channels for it";
  ConvOperands operands = random_operands(*ctx_->stream, problem, ConvPass::forward);
  const std::vector<float> alone = values_of(run(problem, ConvPass::forward, operands));
  std::vector<float> x = values_of(operands.x);
  constexpr int image = 2, row = 7, column = 11, plane = 30 * 30;
  x[image * 20 * plane + 3 * plane + row * 30 + column] = std::numeric_limits<float>::infinity();
  operands.x = Tensor::from(*ctx_->stream, operands.x.shape(), x);
  const std::vector<float> together = values_of(run(problem, ConvPass::forward, operands));
  const auto all = static_cast<std::size_t>(problem.filters * plane);
  for (const std::size_t other : {0, 1, 3})
    EXPECT_TRUE(
        std::equal(alone.begin() + other * all, alone.begin() + (other + 1) * all, together.begin() + other * all));
  for (std::size_t filter = 0; filter < 70; ++filter)  // whether as Inf or as NaN
    EXPECT_FALSE(std::isfinite(together[image * all + filter * plane + row * 30 + column])) << filter;
}

TEST_P(ImplicitGemm, KeepsNanInItsPlane) {
  for (const ConvProblem& problem : problems(GetParam()))
    for (const ConvPass pass : passes_of(GetParam(), problem)) {
      Stream& stream = *ctx_->stream;
      const PassPlaces places = places_of(problem, pass);
      for (const bool rows : {true, false}) {
        const PlaceOf& place = rows ? places.row : places.column;
        const PlaceOf& of_result = rows ? places.result_row : places.result_column;
        ConvOperands operands = random_operands(stream, problem, pass);
        Tensor& factor = rows ? (pass == ConvPass::forward ? operands.x : operands.y)
                              : (pass == ConvPass::backward_weight ? operands.x : operands.w);
        factor = with_nan_at(stream, factor, place, place.count / 2);
        EXPECT_FALSE(holds_nan_elsewhere(stream, run(problem, pass, operands), of_result, place.count / 2))
            << to_string(problem) << ", " << to_string(pass);
      }
    }
}

TEST_P(ImplicitGemm, RejectsUnsupportedProblems) {
  EXPECT_FALSE(engine_->supports(conv_problem("2x17x9x9 * 8x17x5x5"), ConvPass::forward));
  EXPECT_FALSE(engine_->supports(conv_problem("2x8x9x9 * 17x8x5x5"), ConvPass::backward_input));
  EXPECT_FALSE(engine_->supports(conv_problem("2x8x9x9 * 8x4x3x3 groups 2"), ConvPass::forward));
  EXPECT_FALSE(engine_->supports(conv_problem("2x8x9x9 * 8x8x3x3 stride 2"), ConvPass::backward_input));
}

INSTANTIATE_TEST_SUITE_P(On, ImplicitGemm, testing::Values("wgmma", "mma", "shifts"),
                         [](const auto& tested) { return "cuda_" + std::string(tested.param); });

}  // namespace twiddle
