#include "framework/context.h"
#include "layers/conv/engines/engines.h"

#include <gtest/gtest.h>

#include <limits>

#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

TEST_P(EveryDevice, PolyphaseAgreesWithTheReference) {
  Context ctx(GetParam());
  const auto engine = make_polyphase_engine(make_gemm_engine());
  for (const ConvProblem& problem :
       conv_problems({"2x3x23x23 * 8x3x11x11 stride 4 pad 2", "2x4x9x11 * 6x4x3x5 stride 2x3 pad 1x2",
                      "1x2x7x7 * 3x2x2x2 stride 4", "3x6x12x9 * 4x3x5x4 stride 3x2 pad 2x0 groups 2",
                      "2x3x8x8 * 4x3x1x1 stride 2", "3x5x9x12 * 4x5x1x1 stride 2x3 pad 1",
                      "2x3x6x10 * 4x3x3x3 stride 1x2 pad 1", "1x1x5x5 * 2x1x5x5 stride 2"}))
    for (const ConvPass pass : every_pass) {
      ASSERT_TRUE(engine->supports(problem, pass)) << to_string(problem);
      ConvOperands operands = random_operands(*ctx.stream, problem, pass);
      if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx.stream, {problem.filters}, 0.25f);
      run(*engine, ctx, problem, pass, operands);
      EXPECT_LE(conv_error(ctx, problem, pass, operands, std::numeric_limits<int>::max()), promise(Precision::fp32))
          << to_string(problem) << ", " << to_string(pass);
    }
}

TEST_P(EveryDevice, PolyphaseOfEachEngineMatchesReference) {
  Context ctx(GetParam());
  for (auto& inner : make_conv_engines(GetParam())) {
    const auto engine = make_polyphase_engine(std::move(inner));
    for (const ConvProblem& problem :
         conv_problems({"3x5x13x11 * 7x5x5x3 stride 3x2 pad 1x2", "2x3x23x21 * 8x3x11x11 stride 4 pad 2"}))
      for (const ConvPass pass : every_pass) {
        if (!engine->supports(problem, pass)) continue;
        const auto plan = holding_plan(ctx, *engine, problem, pass);
        ASSERT_NE(plan, nullptr) << engine->name() << ", " << to_string(problem);
        ConvOperands operands = random_operands(*ctx.stream, problem, pass);
        plan->run(ctx, operands);
        EXPECT_LE(conv_error(ctx, problem, pass, operands, std::numeric_limits<int>::max()), promise(Precision::fp32))
            << engine->name() << ", " << to_string(problem) << ", " << to_string(pass);
      }
  }
}

TEST(PolyphaseEngine, RejectsStrideOneAndDilation) {
  const auto engine = make_polyphase_engine(make_gemm_engine());
  EXPECT_EQ(engine->name(), "polyphase(gemm)");
  EXPECT_FALSE(engine->supports(conv_problem("1x1x6x6 * 1x1x3x3"), ConvPass::forward));
  EXPECT_FALSE(engine->supports(conv_problem("1x1x9x9 * 1x1x3x3 stride 2 dilation 2"), ConvPass::forward));
}

TEST(PolyphaseEngine, RejectsStridesWithTooManyChannels) {
  const auto engine = make_polyphase_engine(make_gemm_engine());
  for (const char* text :
       {"1x2x32768x32768 * 1x2x32768x32768 stride 32768", "1x1x46341x46341 * 1x1x46341x46341 stride 46341"}) {
    const ConvProblem problem = conv_problem(text);
    validate(problem);
    for (const ConvPass pass : every_pass) {
      EXPECT_FALSE(engine->supports(problem, pass)) << text;
      EXPECT_NE(engine->refusal(problem, pass), "") << text;
    }
  }
}

TEST(PolyphaseEngine, RefusesMoreThan2To31Rows) {
  const ConvProblem problem = conv_problem("32768x65536x3x2 * 4x65536x1x1 stride 2");
  validate(problem);
  for (const ConvPass pass : every_pass)
    EXPECT_NE(make_polyphase_engine(make_gemm_engine())->refusal(problem, pass).find("rows"), std::string::npos);
}

TEST(PolyphaseEngine, SplitsOnlyPhasesWithTaps) {
  const auto engine = make_polyphase_engine(make_gemm_engine());
  const auto plan = first_plan(*engine, conv_problem("2x8x8x8 * 4x8x1x1 stride 2"), ConvPass::forward);
  EXPECT_EQ(plan->facts().kept_bytes, sizeof(float) * (2 * 8 * 4 * 4 + 4 * 8)) << "x at every other place, and w";
}

// x is split once for forward and backward_weight, w once for forward and backward_input; changed operands are split
// again.
TEST(PolyphaseEngine, SharesPhasesBetweenPasses) {
  Context ctx;
  const auto engine = make_polyphase_engine(make_gemm_engine());
  const ConvProblem problem = conv_problem("2x3x13x13 * 8x3x5x5 stride 2 pad 2");
  Tensor x = random_operands(*ctx.stream, problem, ConvPass::forward).x;
  Tensor w = random_operands(*ctx.stream, problem, ConvPass::forward).w;
  const Tensor grad_y = random_operands(*ctx.stream, problem, ConvPass::backward_input).y;
  for (int step = 0; step < 3; ++step) {
    ConvOperands forward{x, w, Tensor(*ctx.stream, problem.output_shape())};
    run(*engine, ctx, problem, ConvPass::forward, forward);
    ConvOperands input{Tensor(*ctx.stream, problem.input_shape()), w, grad_y};
    run(*engine, ctx, problem, ConvPass::backward_input, input);
    ConvOperands weight{x, Tensor(*ctx.stream, problem.weight_shape()), grad_y};
    run(*engine, ctx, problem, ConvPass::backward_weight, weight);
    constexpr int all = std::numeric_limits<int>::max();
    EXPECT_LE(conv_error(ctx, problem, ConvPass::forward, forward, all), promise(Precision::fp32)) << step;
    EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_input, input, all), promise(Precision::fp32)) << step;
    EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_weight, weight, all), promise(Precision::fp32)) << step;
    ctx.stream->fill((step == 0 ? x : w).write(), 7, 0.5f);
  }
}

// Phases depend on the pad as well as on the shape: two convolutions may read one tensor.
TEST(PolyphaseEngine, DoesNotSharePhasesAcrossPads) {
  Context ctx;
  const auto engine = make_polyphase_engine(make_gemm_engine());
  const Tensor x = random_operands(*ctx.stream, conv_problem("2x3x7x7 * 4x3x3x3 stride 2"), ConvPass::forward).x;
  for (const char* text : {"2x3x7x7 * 4x3x3x3 stride 2", "2x3x7x7 * 4x3x4x4 stride 2 pad 1"}) {
    const ConvProblem problem = conv_problem(text);
    ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::forward);
    operands.x = x;
    run(*engine, ctx, problem, ConvPass::forward, operands);
    EXPECT_LE(conv_error(ctx, problem, ConvPass::forward, operands, std::numeric_limits<int>::max()),
              promise(Precision::fp32))
        << text;
  }
}

TEST(PolyphaseEngine, KeepsPhasesWithinBudget) {
  Context ctx;
  const ConvProblem problem = conv_problem("16x8x64x64 * 8x8x3x3 stride 2 pad 1");  // x has 2 MiB
  for (const std::size_t budget : {std::size_t(0), std::size_t(8) << 20}) {
    const auto engine = make_polyphase_engine(make_gemm_engine(), budget);
    ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::forward);
    const std::size_t before = ctx.stream->memory().in_use;
    run(*engine, ctx, problem, ConvPass::forward, operands);
    EXPECT_EQ(ctx.stream->memory().in_use > before, budget > 0);
    engine->forget();
    EXPECT_EQ(ctx.stream->memory().in_use, before);
  }
}

// These strides leave a single output.
TEST_P(EveryDevice, EnginesHandleStridesBeyondInput) {
  Context ctx(GetParam());
  for (const auto& engine : make_conv_engines(GetParam()))
    for (const ConvProblem& problem :
         conv_problems({"4x3x8x8 * 4x3x1x1 stride 1048576", "2x3x8x8 * 4x3x3x3 stride 100 pad 1"}))
      for (const ConvPass pass : every_pass) {
        if (!engine->supports(problem, pass)) continue;
        const auto plan = holding_plan(ctx, *engine, problem, pass);
        ASSERT_NE(plan, nullptr) << engine->name() << ", " << to_string(problem);
        ConvOperands operands = random_operands(*ctx.stream, problem, pass);
        plan->run(ctx, operands);
        EXPECT_LE(conv_error(ctx, problem, pass, operands, std::numeric_limits<int>::max()), promise(Precision::fp32))
            << engine->name() << ", " << to_string(problem) << ", " << to_string(pass);
      }
}

}  // namespace
}  // namespace twiddle
