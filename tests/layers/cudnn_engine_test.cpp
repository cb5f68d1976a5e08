#include "layers/conv/cudnn_engine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/error.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/selector.h"

namespace twiddle {

namespace {

constexpr ConvPass passes[] = {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight};

const ConvProblem problems[] = {
    {.batch = 2, .channels = 13, .height = 9, .width = 11, .filters = 17, .kernel_h = 3, .kernel_w = 3},
    {.batch = 2,
     .channels = 3,
     .height = 23,
     .width = 22,
     .filters = 16,
     .kernel_h = 5,
     .kernel_w = 4,
     .stride_h = 3,
     .stride_w = 4,
     .pad_h = 1},
    {.batch = 4,
     .channels = 64,
     .height = 14,
     .width = 14,
     .filters = 96,
     .kernel_h = 5,
     .kernel_w = 5,
     .pad_h = 2,
     .pad_w = 2},
    {.batch = 2, .channels = 8, .height = 6, .width = 6, .filters = 12},
    {.batch = 2,
     .channels = 32,
     .height = 6,
     .width = 6,
     .filters = 32,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_h = 1,
     .pad_w = 1,
     .groups = 2},
    {.batch = 2,
     .channels = 16,
     .height = 12,
     .width = 12,
     .filters = 16,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_h = 2,
     .pad_w = 2,
     .dilation = 2},
    {.batch = 41,
     .channels = 3,
     .height = 32,
     .width = 32,
     .filters = 16,
     .kernel_h = 3,
     .kernel_w = 3,
     .pad_h = 1,
     .pad_w = 1}};

class CudnnEngines : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no usable GPU";
    if (make_cudnn_engines({}).empty()) GTEST_SKIP() << "a build without cuDNN";
    ctx_ = std::make_unique<Context>(Device{Device::Kind::cuda, 0});
  }
  double error_of(ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
    ConvOperands operands = random_operands(*ctx_->stream, problem, pass);
    if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx_->stream, {problem.filters}, 0.5f);
    engine.run(*ctx_, problem, pass, operands);
    return conv_error(*ctx_, problem, pass, operands, 1000);
  }
  std::unique_ptr<Context> ctx_;
};

}  // namespace

TEST_F(CudnnEngines, TheFirstKeepsEveryPrecision) {
  const auto engines = make_cudnn_engines({});
  EXPECT_EQ(engines.front()->name(), "cudnn");
  for (ConvProblem problem : problems)
    for (const ConvPass pass : passes)
      for (const Precision precision : {Precision::fp32, Precision::tf32}) {
        problem.precision = precision;
        SCOPED_TRACE(to_string(problem) + " " + std::string(to_string(pass)) + " " + std::string(to_string(precision)));
        ASSERT_TRUE(engines.front()->supports(problem, pass));
        EXPECT_EQ(engines.front()->details(problem, pass), "");
        EXPECT_LE(error_of(*engines.front(), problem, pass), promise(precision));
        EXPECT_NE(engines.front()->details(problem, pass), "");
      }
}

TEST_F(CudnnEngines, EachWayByNameIsRightWhereItSupports) {
  const auto engines = make_cudnn_engines({});
  for (const auto& engine : engines) {
    int supported = 0;
    for (const ConvProblem& problem : problems)
      for (const ConvPass pass : passes) {
        if (!engine->supports(problem, pass)) continue;
        SCOPED_TRACE(std::string(engine->name()) + " " + to_string(problem) + " " + std::string(to_string(pass)));
        ++supported;
        // By name a way is taken even where it misses the class: Winograd's 5x5 has an error of 8.5e-4 (measured on an
        // H200).
        const bool winograd = engine->name().find("winograd") != std::string_view::npos;
        EXPECT_LE(error_of(*engine, problem, pass), winograd ? 2e-3 : 2e-5);
      }
    // cuDNN 9.19 has fused Winograd for none of these problems on an H200.
    if (engine->name() != "cudnn:winograd") {
      EXPECT_GT(supported, 0) << engine->name();
    }
    EXPECT_EQ(engine->by_name_only(), engine != engines.front());
  }
}

TEST_F(CudnnEngines, NoWayTakesMoreThanTheWorkspaceLimit) {
  constexpr std::size_t limit = 64 << 10;
  const auto engines = make_cudnn_engines({.workspace_limit = limit});
  for (const ConvProblem& problem : problems)
    for (const ConvPass pass : passes) {
      if (!engines.front()->supports(problem, pass)) continue;
      EXPECT_LE(error_of(*engines.front(), problem, pass), promise(Precision::fp32)) << to_string(problem);
      EXPECT_LE(engines.front()->workspace_bytes(problem, pass), limit);
    }
}

TEST_F(CudnnEngines, DeterministicRunsGiveEqualBits) {
  const ConvProblem problem = problems[2];
  for (const ConvPass pass : passes) {
    std::vector<float> first;
    for (int run = 0; run < 3; ++run) {
      const auto engines = make_cudnn_engines({.deterministic = true});
      ConvOperands operands = random_operands(*ctx_->stream, problem, pass);
      engines.front()->run(*ctx_, problem, pass, operands);
      const Tensor& written = pass == ConvPass::forward          ? operands.y
                              : pass == ConvPass::backward_input ? operands.x
                                                                 : operands.w;
      const std::vector<float> result = written.to_vector(*ctx_->stream);
      if (first.empty()) first = result;
      EXPECT_EQ(result, first) << to_string(pass);
    }
  }
}

TEST_F(CudnnEngines, TakesNoMoreWorkspaceThanItSaysOnceChosen) {
  const auto engines = make_cudnn_engines({});
  const ConvProblem problem = problems[2];
  for (const ConvPass pass : passes) {
    ConvOperands operands = random_operands(*ctx_->stream, problem, pass);
    engines.front()->run(*ctx_, problem, pass, operands);
    const std::size_t before = ctx_->stream->memory().in_use;
    ctx_->stream->reset_peak();
    engines.front()->run(*ctx_, problem, pass, operands);
    const std::size_t rounding = 1 << 16;  // the pool's
    EXPECT_LE(ctx_->stream->memory().peak - before, engines.front()->workspace_bytes(problem, pass) + rounding);
  }
}

TEST_F(CudnnEngines, MeasuringAndTheRuleLeaveTheWaysByNameAlone) {
  const ConvProblem problem = problems[0];
  for (const std::string how : {"measured", "rule"}) {
    ConvSelector selector(make_conv_engines(ctx_->stream->device()), {.engine = how});
    for (const ConvPass pass : passes) {
      ConvEngine& chosen = selector.choose(*ctx_, problem, pass);
      EXPECT_FALSE(chosen.by_name_only()) << chosen.name();
      EXPECT_NE(selector.find(problem, pass)->reason, "");
    }
  }
}

}  // namespace twiddle
