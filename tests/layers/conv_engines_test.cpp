#include "layers/conv/engines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/error.h"
#include "framework/random.h"
#include "tests/support/check_close.h"

namespace twiddle {

namespace {

constexpr ConvPass passes[] = {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight};

const std::vector<ConvProblem>& awkward_problems() {
  static const std::vector<ConvProblem> problems{
      {},                                                                                                // all ones
      {.batch = 3, .channels = 5, .filters = 7, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1},   // a 1x1 plane
      {.batch = 2, .channels = 4, .height = 6, .width = 6, .filters = 3, .kernel_h = 6, .kernel_w = 6},  // kernel =
                                                                                                         // plane
      {.batch = 2, .channels = 13, .height = 9, .width = 11, .filters = 17, .kernel_h = 3, .kernel_w = 3},
      {.channels = 3,
       .height = 15,
       .width = 15,
       .filters = 8,
       .kernel_h = 5,
       .kernel_w = 5,
       .stride_h = 2,
       .stride_w = 2,
       .pad_h = 2,
       .pad_w = 2},
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
      {.batch = 2,
       .channels = 16,
       .height = 8,
       .width = 8,
       .filters = 32,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 1,
       .pad_w = 1},
      {.batch = 2,
       .channels = 4,
       .height = 7,
       .width = 7,
       .filters = 4,
       .kernel_h = 2,
       .kernel_w = 2,
       .stride_h = 4,
       .stride_w = 4},  // gaps
      {.batch = 2,
       .channels = 6,
       .height = 5,
       .width = 12,
       .filters = 4,
       .kernel_h = 1,
       .kernel_w = 7,
       .stride_w = 2,
       .pad_w = 3},
      {.batch = 2, .channels = 8, .height = 5, .width = 5, .filters = 12},  // 1x1 kernel: a plain product
      {.batch = 2, .channels = 8, .height = 6, .width = 6, .filters = 12, .stride_h = 2, .stride_w = 2},
      {.batch = 2,
       .channels = 6,
       .height = 9,
       .width = 9,
       .filters = 10,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 1,
       .pad_w = 1,
       .groups = 2},
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
       .channels = 7,
       .height = 8,
       .width = 8,
       .filters = 7,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 1,
       .pad_w = 1,
       .groups = 7},
      {.channels = 4,
       .height = 11,
       .width = 12,
       .filters = 5,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 2,
       .pad_w = 2,
       .dilation = 2},
      {.batch = 2,
       .channels = 4,
       .height = 14,
       .width = 14,
       .filters = 6,
       .kernel_h = 3,
       .kernel_w = 2,
       .stride_h = 2,
       .stride_w = 3,
       .pad_h = 3,
       .pad_w = 1,
       .dilation = 3,
       .groups = 2},
      {.batch = 2,
       .channels = 3,
       .height = 4,
       .width = 4,
       .filters = 5,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 4,
       .pad_w = 4},  // sees padding alone
      {.batch = 5, .channels = 1, .height = 12, .width = 12, .filters = 20, .kernel_h = 5, .kernel_w = 5},
  };
  return problems;
}

Tensor random_tensor(Stream& stream, const Shape& shape, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = RandomSequence{seed}.normal(static_cast<std::int64_t>(i));
  return Tensor::from(stream, shape, values);
}

// The pool's free blocks hold NaN afterwards, so that scratch which is read before it is written shows.
void dirty_pool(Stream& stream) {
  std::vector<std::shared_ptr<void>> blocks;
  for (std::size_t bytes = 512; bytes <= std::size_t(1) << 22; bytes *= 2) {
    blocks.push_back(stream.allocate(bytes));
    stream.fill(static_cast<float*>(blocks.back().get()), static_cast<std::int64_t>(bytes / 4),
                std::numeric_limits<float>::quiet_NaN());
  }
}

ConvOperands operands_for(Stream& stream, const ConvProblem& problem, ConvPass pass, bool biased) {
  const float unwritten = std::numeric_limits<float>::quiet_NaN();
  const auto tensor = [&](const Shape& shape, ConvPass writer, std::uint64_t seed) {
    return pass == writer ? Tensor::filled(stream, shape, unwritten) : random_tensor(stream, shape, seed);
  };
  return {tensor(problem.input_shape(), ConvPass::backward_input, 1),
          tensor(problem.weight_shape(), ConvPass::backward_weight, 2),
          tensor(problem.output_shape(), ConvPass::forward, 3),
          pass == ConvPass::forward && biased ? random_tensor(stream, {problem.filters}, 4) : Tensor()};
}

struct EngineCase {
  std::string engine;
  ConvPass pass;
};

std::vector<EngineCase> engines_and_passes(bool with_direct) {
  std::vector<EngineCase> cases;
  for (const auto& engine : make_conv_engines({}))
    for (const ConvPass pass : passes)
      if (with_direct || engine->name() != "direct") cases.push_back({std::string(engine->name()), pass});
  return cases;
}

std::string name_of(const testing::TestParamInfo<EngineCase>& tested) {
  std::string name = tested.param.engine + "_" + std::string(to_string(tested.param.pass));
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

// Others may leave out what they cannot do.
bool takes_everything(const ConvEngine& engine) {
  return engine.name() == "direct" || engine.name() == "gemm" || engine.name() == "onednn";
}

class EveryConvEngine : public testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    for (auto& engine : make_conv_engines({}))
      if (engine->name() == GetParam().engine) engine_ = std::move(engine);
  }
  // What lossy engines may add to the promise: F(4x4, 3x3) of oneDNN.
  double allowed() const { return engine_->name() == "onednn:winograd" ? 2e-5 : promise(Precision::fp32); }
  void expect_right(const ConvProblem& problem, int samples) {
    const ConvPass pass = GetParam().pass;
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(to_string(problem) + (biased ? " with bias" : ""));
      EXPECT_TRUE(engine_->supports(problem, pass) || !takes_everything(*engine_));
      if (!engine_->supports(problem, pass)) continue;
      ConvOperands operands = operands_for(*ctx_.stream, problem, pass, biased);
      dirty_pool(*ctx_.stream);
      engine_->run(ctx_, problem, pass, operands);
      EXPECT_LE(conv_error(ctx_, problem, pass, operands, samples), allowed());
    }
  }
  Context ctx_;
  std::unique_ptr<ConvEngine> engine_;
};

// All but the reference itself, which is too slow for large layers.
class FastConvEngine : public EveryConvEngine {};

}  // namespace

TEST_P(EveryConvEngine, AgreesWithTheReferenceOnAwkwardProblems) {
  for (const ConvProblem& problem : awkward_problems()) expect_right(problem, std::numeric_limits<int>::max());
}

TEST_P(FastConvEngine, AgreesWithTheReferenceOnRealLayers) {
  const ConvProblem layers[] = {
      {.batch = 2,
       .channels = 3,
       .height = 224,
       .width = 224,
       .filters = 64,
       .kernel_h = 11,
       .kernel_w = 11,
       .stride_h = 4,
       .stride_w = 4,
       .pad_h = 2,
       .pad_w = 2},
      {.batch = 1,
       .channels = 64,
       .height = 27,
       .width = 27,
       .filters = 192,
       .kernel_h = 5,
       .kernel_w = 5,
       .pad_h = 2,
       .pad_w = 2},
      {.batch = 1,
       .channels = 192,
       .height = 13,
       .width = 13,
       .filters = 384,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 1,
       .pad_w = 1},
      {.batch = 1, .channels = 96, .height = 28, .width = 28, .filters = 256, .kernel_h = 5, .kernel_w = 5},
      {.batch = 1,
       .channels = 256,
       .height = 12,
       .width = 12,
       .filters = 512,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 1,
       .pad_w = 1}};
  for (const ConvProblem& problem : layers) expect_right(problem, 100);
}

TEST_P(FastConvEngine, LongSumsOverTheBatchKeepThePrecision) {
  // 40,000 terms an element; an odd batch, so that slices of it differ in size.
  expect_right({.batch = 41,
                .channels = 3,
                .height = 32,
                .width = 32,
                .filters = 16,
                .kernel_h = 3,
                .kernel_w = 3,
                .pad_h = 1,
                .pad_w = 1},
               200);
  expect_right({.batch = 165, .channels = 32, .height = 8, .width = 8, .filters = 32, .kernel_h = 1, .kernel_w = 1},
               200);
}

TEST_P(EveryConvEngine, TakesNoMoreWorkspaceThanItSays) {
  const ConvPass pass = GetParam().pass;
  const ConvProblem problem{
      .batch = 4, .channels = 32, .height = 14, .width = 14, .filters = 48, .kernel_h = 3, .kernel_w = 3};
  EXPECT_TRUE(engine_->supports(problem, pass) || !takes_everything(*engine_));
  if (!engine_->supports(problem, pass)) return;
  ConvOperands operands = operands_for(*ctx_.stream, problem, pass, true);
  const std::size_t before = ctx_.stream->memory().in_use;
  ctx_.stream->reset_peak();
  engine_->run(ctx_, problem, pass, operands);
  const std::size_t rounding = std::size_t(4) << 16;  // the pool's, of at most four blocks
  EXPECT_LE(ctx_.stream->memory().peak - before, engine_->workspace_bytes(problem, pass) + rounding);
}

INSTANTIATE_TEST_SUITE_P(All, EveryConvEngine, testing::ValuesIn(engines_and_passes(true)), name_of);
INSTANTIATE_TEST_SUITE_P(All, FastConvEngine, testing::ValuesIn(engines_and_passes(false)), name_of);

TEST(ConvEngines, DirectSupportsEverythingAndIsNotFirst) {
  const auto engines = make_conv_engines({});
  EXPECT_NE(engines.front()->name(), "direct");
  for (const auto& engine : engines) {
    if (engine->name() != "direct" && engine->name() != "gemm") continue;
    for (const ConvProblem& problem : awkward_problems())
      for (const ConvPass pass : passes) EXPECT_TRUE(engine->supports(problem, pass));
  }
}

TEST(ConvEngines, TheReferenceIsACrossCorrelation) {
  // x is 1x1x3x3 = 1..9, w is 1x1x2x2, bias 100.
  const ConvProblem problem{.height = 3, .width = 3, .kernel_h = 2, .kernel_w = 2};
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 10, 100, 1000}, bias[] = {0.5f}, grad_y[] = {1, 0, 0, 2};
  EXPECT_EQ(conv_reference(problem, ConvPass::forward, x, w, nullptr, bias, 0), 1 + 20 + 400 + 5000 + 0.5);
  EXPECT_EQ(conv_reference(problem, ConvPass::forward, x, w, nullptr, nullptr, 3), 5 + 60 + 800 + 9000);
  // The middle input is seen by the first output through the last tap and by the last output through the first.
  EXPECT_EQ(conv_reference(problem, ConvPass::backward_input, nullptr, w, grad_y, nullptr, 4), 1000 + 2 * 1);
  EXPECT_EQ(conv_reference(problem, ConvPass::backward_weight, x, nullptr, grad_y, nullptr, 1), 2 * 1 + 6 * 2);
}

TEST(ConvEngines, AnUnwrittenElementIsAnError) {
  Context ctx;
  const ConvProblem problem{.batch = 2, .channels = 2, .height = 4, .width = 4};
  const ConvOperands operands = operands_for(*ctx.stream, problem, ConvPass::forward, false);
  EXPECT_FALSE(conv_error(ctx, problem, ConvPass::forward, operands, 10) <= 1);
}

TEST(ConvEngines, BackwardInputUsesTheGradientThatBackwardWeightSaw) {
  Context ctx;
  const ConvProblem problem{
      .batch = 2, .channels = 16, .height = 10, .width = 10, .filters = 16, .kernel_h = 3, .kernel_w = 3};
  for (const auto& engine : make_conv_engines({})) {
    if (!engine->supports(problem, ConvPass::backward_weight)) continue;
    ConvOperands weight = operands_for(*ctx.stream, problem, ConvPass::backward_weight, false);
    ConvOperands input = operands_for(*ctx.stream, problem, ConvPass::backward_input, false);
    input.y = weight.y;
    for (const float changed : {0.0f, 3.0f}) {  // the second time the gradient changes in between
      engine->run(ctx, problem, ConvPass::backward_weight, weight);
      if (changed != 0) ctx.stream->fill(input.y.write(), 100, changed);
      if (!engine->supports(problem, ConvPass::backward_input)) continue;
      engine->run(ctx, problem, ConvPass::backward_input, input);
      EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_input, input, 1000), 2e-5) << engine->name();
    }
  }
}

}  // namespace twiddle
