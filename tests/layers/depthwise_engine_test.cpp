#include "layers/conv/engines/engines.h"

#include "layers/conv/kernels/cpu/depthwise.h"
#include "layers/conv/tuner/trial.h"
#include "layers/conv/tuner/tuner.h"
#include "tests/support/conv_problem.h"
#include "tests/support/depthwise_check.h"
#include "tests/support/depthwise_problem.h"
#include "tests/support/every_device.h"
#include "tests/support/every_instruction_set.h"

namespace twiddle {

namespace {

struct DepthwiseLoops : EveryInstructionSet {};

}  // namespace

TEST_P(EveryDevice, DepthwiseMatchesReferenceOnRandomProblems) {
  Context ctx(GetParam());
  const auto engine = make_depthwise_engine(GetParam());
  int runs = 0;
  for (int number = 0; number < random_depthwise_problems(); ++number) {
    const ConvProblem problem = random_depthwise_problem(number, 11, 2, 1);
    for (const ConvPass pass : every_pass) {
      const auto plan = first_plan(*engine, problem, pass);
      expect_depthwise_pass(ctx, problem, pass, number % 2 == 0 && plan->facts().fuses_epilogue_backward,
                            [&](ConvOperands& operands) { plan->run(ctx, operands); });
      ++runs;
    }
  }
  EXPECT_EQ(runs, 3 * random_depthwise_problems());
}

// Planes of one row, with kernels longer than any other kernel that has a dedicated GPU kernel.
TEST_P(EveryDevice, DepthwiseMatchesReferenceOnRows) {
  Context ctx(GetParam());
  const auto engine = make_depthwise_engine(GetParam());
  for (const ConvProblem& problem :
       conv_problems({"5x3x1x512 * 3x1x1x7 pad 0x3 groups 3", "9x2x1x4096 * 2x1x1x127 pad 0x63 groups 2",
                      "2x2x1x4096 * 2x1x1x1023 pad 0x511 groups 2", "1x1x1x50 * 1x1x1x2040 pad 0x1100",
                      "70x3x1x37 * 3x1x1x12 pad 0x5 groups 3", "3x5x1x1022 * 5x1x1x20 groups 5"}))
    for (const ConvPass pass : every_pass)
      for (const bool masked : {false, true}) {
        const auto plan = first_plan(*engine, problem, pass);
        expect_depthwise_pass(ctx, problem, pass, masked && plan->facts().fuses_epilogue_backward,
                              [&](ConvOperands& operands) { plan->run(ctx, operands); });
      }
}

TEST_P(EveryDevice, DepthwiseMatchesReferenceOnSmallPlanes) {
  Context ctx(GetParam());
  const auto engine = make_depthwise_engine(GetParam());
  for (const ConvProblem& problem : problems_of_cells())
    for (const ConvPass pass : every_pass) {
      const auto plan = first_plan(*engine, problem, pass);
      for (const bool masked : {false, true})
        expect_depthwise_pass(ctx, problem, pass, masked && plan->facts().fuses_epilogue_backward,
                              [&](ConvOperands& operands) { plan->run(ctx, operands); });
      EXPECT_FALSE(PassTrial(ctx, problem, pass).spreads_nan(*plan)) << to_string(problem);
    }
}

TEST_P(EveryDevice, DepthwiseRejectsDenseAndGroupedProblems) {
  const auto engine = make_depthwise_engine(GetParam());
  for (const ConvProblem& problem :
       conv_problems({"2x4x8x8 * 4x4x3x3 pad 1", "2x4x8x8 * 4x2x3x3 pad 1 groups 2", "2x4x8x8 * 8x1x3x3 groups 4"}))
    for (const ConvPass pass : every_pass) EXPECT_FALSE(engine->supports(problem, pass)) << to_string(problem);
  EXPECT_TRUE(engine->supports(conv_problem("2x4x8x8 * 4x1x3x3 pad 1 groups 4"), ConvPass::forward));
}

TEST_P(EveryDevice, DepthwiseRulePrefersFftForLongRows) {
  if (GetParam().kind == Device::Kind::cpu) GTEST_SKIP() << "the CPU heuristic has separate tests";
  ConvTuner tuner(make_conv_engines(GetParam()), {.engine = "rule"});
  const auto engine_of = [&](const char* problem) {
    return tuner.expected(conv_problem(problem), ConvPass::forward)->facts().engine;
  };
  EXPECT_EQ(engine_of("2x4x1x4096 * 4x1x1x127 pad 0x63 groups 4"), "depthwise");
  EXPECT_EQ(engine_of("2x4x1x4096 * 4x1x1x1023 pad 0x511 groups 4"), "cufft");
}

TEST_P(EveryDevice, DepthwiseFusesBiasAndRelu) {
  Context ctx(GetParam());
  const ConvProblem problem = conv_problem("1x2x1x4 * 2x1x1x1 groups 2");
  const auto engine = make_depthwise_engine(GetParam());
  Stream& stream = *ctx.stream;
  ConvOperands operands{Tensor::from(stream, problem.input_shape(), {1, 2, 3, 4, 1, 2, 3, 4}),
                        Tensor::from(stream, problem.weight_shape(), {1, -1}), Tensor(stream, problem.output_shape()),
                        Tensor::from(stream, {2}, {-2, 3}), true};
  run(*engine, ctx, problem, ConvPass::forward, operands);
  EXPECT_EQ(operands.y.to_vector(stream), (std::vector<float>{0, 0, 1, 2, 2, 1, 0, 0}));
}

// On the CPU: any kernel, stride and dilation.
TEST_P(DepthwiseLoops, MatchReferenceOnRandomProblems) {
  Context ctx;
  for (int number = 0; number < random_depthwise_problems(); ++number) {
    const ConvProblem problem = random_depthwise_problem(number, 17, 4, 3);
    for (const ConvPass pass : every_pass)
      expect_depthwise_pass(ctx, problem, pass, number % 2 == 0, [&](ConvOperands& operands) {
        depthwise_on_cpu(*ctx.stream, problem, pass, operands, GetParam());
      });
  }
}
INSTANTIATE_TEST_SUITE_P(Sets, DepthwiseLoops, every_instruction_set(), name_of_set);

}  // namespace twiddle
