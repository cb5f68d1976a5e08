#include "layers/conv/conv_check.h"

#include <cmath>

#include "layers/conv/engines.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

const ConvProblem problems[] = {
    {.batch = 3, .channels = 5, .height = 7, .width = 9, .filters = 4, .kernel_h = 3, .kernel_w = 2},
    {.batch = 2,
     .channels = 4,
     .height = 14,
     .width = 13,
     .filters = 6,
     .kernel_h = 3,
     .kernel_w = 2,
     .stride_h = 2,
     .stride_w = 3,
     .pad_h = 3,
     .pad_w = 1,
     .dilation = 3,
     .groups = 2}};
constexpr ConvPass passes[] = {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight};

const ConvEngine& gemm_of(const std::vector<std::unique_ptr<ConvEngine>>& engines) {
  for (const auto& engine : engines)
    if (engine->name() == "gemm") return *engine;
  throw std::runtime_error("no gemm");
}

const float* written(ConvPass pass, const ConvOperands& operands) {
  return (pass == ConvPass::forward ? operands.y : pass == ConvPass::backward_input ? operands.x : operands.w).read();
}

}  // namespace

TEST_P(EveryDevice, ConvCheckHoldsARightResult) {
  Context ctx(GetParam());
  const auto engines = make_conv_engines(GetParam());
  auto& gemm = const_cast<ConvEngine&>(gemm_of(engines));
  for (const ConvProblem& problem : problems)
    for (const ConvPass pass : passes) {
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
  const ConvProblem problem{.height = 4, .width = 4, .kernel_h = 2, .kernel_w = 2};
  ConvOperands operands{Tensor::filled(*ctx.stream, problem.input_shape(), 1.0f),
                        Tensor::filled(*ctx.stream, problem.weight_shape(), 1.0f),
                        Tensor::filled(*ctx.stream, problem.output_shape(), 4.0f),
                        {}};
  const ConvCheck check(*ctx.stream, problem, ConvPass::forward, operands, 100);
  EXPECT_EQ(check.error(*ctx.stream, operands.y.read()), 0);
  ctx.stream->fill(operands.y.write() + 5, 1, 8.0f);  // one of nine is off by all of itself
  EXPECT_NEAR(check.error(*ctx.stream, operands.y.read()), 1.0 / 3, 1e-9);
}

}  // namespace twiddle
