#include "layers/conv/tuner/conv_check.h"
#include "framework/context.h"

#include <cmath>
#include <limits>

#include "layers/conv/engines/engines.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

const std::vector<std::string> checked_problems = {"3x5x7x9 * 4x5x3x2",
                                                   "2x4x14x13 * 6x2x3x2 stride 2x3 pad 3x1 dilation 3 groups 2"};

const ConvEngine& gemm_of(const std::vector<std::unique_ptr<ConvEngine>>& engines) {
  for (const auto& engine : engines)
    if (engine->name() == "gemm") return *engine;
  throw std::runtime_error("no gemm");
}

}  // namespace

TEST_P(EveryDevice, ConvCheckAcceptsCorrectResult) {
  Context ctx(GetParam());
  const auto engines = make_conv_engines(GetParam());
  auto& gemm = const_cast<ConvEngine&>(gemm_of(engines));
  for (const ConvProblem& problem : conv_problems(checked_problems))
    for (const ConvPass pass : every_pass) {
      SCOPED_TRACE(to_string(problem) + " " + std::string(to_string(pass)));
      ConvOperands operands = random_operands(*ctx.stream, problem, pass);
      if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx.stream, {problem.filters}, 3.0f);
      const ConvCheck check(*ctx.stream, problem, pass, operands, 1 << 30);
      EXPECT_TRUE(std::isnan(check.error(*ctx.stream, written(pass, operands)))) << "nothing is written yet";
      run(gemm, ctx, problem, pass, operands);
      EXPECT_LE(check.error(*ctx.stream, written(pass, operands)), 1e-6);
    }
}

TEST_P(EveryDevice, ConvCheckFindsWrongElement) {
  Context ctx(GetParam());
  const ConvProblem problem = conv_problem("1x1x4x4 * 1x1x2x2");
  ConvOperands operands{Tensor::filled(*ctx.stream, problem.input_shape(), 1.0f),
                        Tensor::filled(*ctx.stream, problem.weight_shape(), 1.0f),
                        Tensor::filled(*ctx.stream, problem.output_shape(), 4.0f),
                        {}};
  const ConvCheck check(*ctx.stream, problem, ConvPass::forward, operands, 100);
  EXPECT_EQ(check.error(*ctx.stream, operands.y), 0);
  ctx.stream->fill(operands.y.write() + 5, 1, 8.0f);  // one of nine is off by all of itself
  EXPECT_NEAR(check.error(*ctx.stream, operands.y), 1.0 / 3, 1e-9);
}

// Errors of transforms or sums that two images or two filters share: rounding of the large one appears in the small
// one.
TEST_P(EveryDevice, ConvCheckFindsErrorsInSmallImages) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  const auto engines = make_conv_engines(GetParam());
  auto& gemm = const_cast<ConvEngine&>(gemm_of(engines));
  const ConvProblem problem = conv_problem("8x8x9x9 * 8x8x3x3 pad 1");
  for (const ConvPass pass : every_pass) {
    ConvOperands operands = random_operands(stream, problem, pass);
    run(gemm, ctx, problem, pass, operands);
    const PassPlaces places = places_of(problem, pass);
    for (const PlaceOf& place : {places.result_row, places.result_column}) {
      Tensor result = written(pass, operands);
      const std::vector<float> right = result.to_vector(stream);
      std::vector<float> spoilt = right;
      for (std::size_t i = 0; i < spoilt.size(); ++i)  // 1 from 0, 3 from 2 and so on
        if (const auto index = static_cast<std::int64_t>(i); place(index) % 2 == 1)
          spoilt[i] += 1e-7f * right[static_cast<std::size_t>(index - place.elements)];
      ConvOperands wrong = operands;
      Tensor& target = pass == ConvPass::forward ? wrong.y : pass == ConvPass::backward_input ? wrong.x : wrong.w;
      target = Tensor::from(stream, result.shape(), spoilt);
      EXPECT_LE(conv_error(ctx, problem, pass, operands, 200), promise(Precision::fp32));
      EXPECT_GT(conv_error(ctx, problem, pass, wrong, 200), 20 * promise(Precision::fp32)) << to_string(pass);
    }
  }
}

TEST_P(EveryDevice, ConvCheckFindsUnsampledUnwrittenElement) {
  Context ctx(GetParam());
  const ConvProblem problem = conv_problem("1x1x8x8 * 1x1x1x1");
  for (const int unwritten : {0, 63}) {  // the one sample is not at both ends
    ConvOperands operands{Tensor::filled(*ctx.stream, problem.input_shape(), 1.0f),
                          Tensor::filled(*ctx.stream, problem.weight_shape(), 1.0f),
                          Tensor::filled(*ctx.stream, problem.output_shape(), 1.0f),
                          {}};
    ctx.stream->fill(operands.y.write() + unwritten, 1, std::numeric_limits<float>::quiet_NaN());
    const ConvCheck check(*ctx.stream, problem, ConvPass::forward, operands, 1);
    EXPECT_TRUE(std::isnan(check.error(*ctx.stream, operands.y)));
    EXPECT_TRUE(std::isnan(conv_error(ctx, problem, ConvPass::forward, operands, 1)));
  }
}

TEST_P(EveryDevice, ConvCheckFindsNanOutsideItsPlane) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  const Tensor ones = Tensor::filled(stream, {3, 4, 5}, 1);
  const PlaceOf image{20, 3}, channel{5, 4};
  const Tensor poisoned = with_nan_at(stream, ones, image, 1);
  const std::vector<float> values = poisoned.to_vector(stream);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i / 20 == 1) << i;
  EXPECT_FALSE(holds_nan_elsewhere(stream, poisoned, image, 1));
  EXPECT_TRUE(holds_nan_elsewhere(stream, poisoned, image, 0));
  EXPECT_TRUE(holds_nan_elsewhere(stream, poisoned, channel, 1));
  EXPECT_FALSE(holds_nan_elsewhere(stream, ones, image, 1));
}

}  // namespace twiddle
