#include "layers/conv/conv_check.h"

#include <cmath>
#include <limits>

#include "layers/conv/engines.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

const std::vector<std::string> problems = {"3x5x7x9 * 4x5x3x2",
                                           "2x4x14x13 * 6x2x3x2 stride 2x3 pad 3x1 dilation 3 groups 2"};

const ConvEngine& gemm_of(const std::vector<std::unique_ptr<ConvEngine>>& engines) {
  for (const auto& engine : engines)
    if (engine->name() == "gemm") return *engine;
  throw std::runtime_error("no gemm");
}

}  // namespace

TEST_P(EveryDevice, ConvCheckHoldsARightResult) {
  Context ctx(GetParam());
  const auto engines = make_conv_engines(GetParam());
  auto& gemm = const_cast<ConvEngine&>(gemm_of(engines));
  for (const ConvProblem& problem : conv_problems(problems))
    for (const ConvPass pass : every_pass) {
      SCOPED_TRACE(to_string(problem) + " " + std::string(to_string(pass)));
      ConvOperands operands = random_operands(*ctx.stream, problem, pass);
      if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx.stream, {problem.filters}, 3.0f);
      const ConvCheck check(*ctx.stream, problem, pass, operands, 1 << 30);
      EXPECT_TRUE(std::isnan(check.error(*ctx.stream, written(pass, operands)))) << "nothing is written yet";
      gemm.run(ctx, problem, pass, operands);
      EXPECT_LE(check.error(*ctx.stream, written(pass, operands)), 1e-6);
    }
}

TEST_P(EveryDevice, ConvCheckSeesAWrongElement) {
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

TEST_P(EveryDevice, ConvCheckSeesAnUnwrittenElementThatItDoesNotSample) {
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

}  // namespace twiddle
