#include "framework/context.h"
#include "layers/conv/engines/engines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "framework/error.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"

namespace twiddle {

namespace {

const std::vector<ConvProblem>& awkward_problems() {
  static const std::vector<ConvProblem> problems = conv_problems({
      "1x1x1x1 * 1x1x1x1",
      "3x5x1x1 * 7x5x3x3 pad 1",  // a 1x1 plane
      "2x4x6x6 * 3x4x6x6",        // kernel = plane
      "2x13x9x11 * 17x13x3x3",
      "1x3x15x15 * 8x3x5x5 stride 2 pad 2",
      "2x3x23x22 * 16x3x5x4 stride 3x4 pad 1x0",
      "2x16x8x8 * 32x16x3x3 pad 1",
      "2x4x7x7 * 4x4x2x2 stride 4",  // gaps
      "2x6x5x12 * 4x6x1x7 stride 1x2 pad 0x3",
      "2x8x5x5 * 12x8x1x1",  // 1x1 kernel: a plain product
      "2x8x6x6 * 12x8x1x1 stride 2",
      "2x6x9x9 * 10x3x3x3 pad 1 groups 2",
      "2x32x6x6 * 32x16x3x3 pad 1 groups 2",
      "2x7x8x8 * 7x1x3x3 pad 1 groups 7",
      "3x40x13x11 * 40x1x9x7 pad 4x3 groups 40",
      "2x3x8x9 * 12x1x3x3 pad 1 groups 3",
      "2x20x1x150 * 20x1x1x31 pad 0x15 groups 20",
      "2x4x1x300 * 6x4x1x64 pad 0x32",
      "1x4x11x12 * 5x4x3x3 pad 2 dilation 2",
      "2x4x14x14 * 6x2x3x2 stride 2x3 pad 3x1 dilation 3 groups 2",
      "2x3x4x4 * 5x3x3x3 pad 4",  // sees padding alone
      "1x16x4x4 * 16x8x1x1 groups 2",
      "1x4x4x4 * 16x2x1x1 groups 2",
      "2x8x9x9 * 8x8x3x3 pad 1",
      "2x9x9x9 * 8x9x3x3 pad 1",
      "2x3x10x10 * 4x3x1x1 stride 3",  // inputs that no window covers
      "1x5x17x16 * 6x5x14x14",
      "1x3x28x28 * 6x3x14x14 stride 14",
      "2x9x7x8 * 3x9x3x3 pad 1",  // few filters from here on
      "2x12x6x11 * 1x12x5x4 pad 4x0",
      "2x8x9x8 * 2x4x3x2 pad 1x0 dilation 2 groups 2",
      "1x6x5x7 * 2x6x2x2 pad 2",
      "5x1x12x12 * 20x1x5x5",
      "2x5x15x14 * 5x1x3x3 stride 2 pad 1 groups 5",  // depthwise from here on
      "3x3x9x8 * 3x1x4x4 stride 2 pad 1 groups 3",
      "2x3x12x16 * 3x1x7x7 pad 3 groups 3",
      "1x2x10x11 * 2x1x2x6 pad 0x3 groups 2",
      "2x4x5x5 * 4x1x9x9 pad 4 groups 4",  // of whose taps some meet padding alone
      "2x3x6x7 * 3x1x3x3 pad 5 groups 3",  // and some outputs
      "1x24x6x6 * 24x1x3x3 stride 2 pad 1 groups 24",
      "70x2x7x7 * 2x1x7x7 pad 3 groups 2",
      "2x2x1x40 * 2x1x1x11 pad 0x5 groups 2",  // one row
      "1x2x150x140 * 2x1x5x5 pad 2 groups 2",
      "2x3x13x14 * 3x1x3x2 stride 3x2 pad 1 dilation 2 groups 3",
      "1x3x30x28 * 3x1x11x11 stride 2 pad 5 groups 3",
  });
  return problems;
}

// Afterwards the pool's free blocks hold NaN, so that a read of unwritten scratch is detected.
void dirty_pool(Stream& stream) {
  std::vector<std::shared_ptr<void>> blocks;
  for (std::size_t bytes = 512; bytes <= std::size_t(1) << 22; bytes *= 2) {
    blocks.push_back(stream.allocate(bytes));
    stream.fill(static_cast<float*>(blocks.back().get()), static_cast<std::int64_t>(bytes / 4),
                std::numeric_limits<float>::quiet_NaN());
  }
}

ConvOperands operands_for(Stream& stream, const ConvProblem& problem, ConvPass pass, bool biased) {
  ConvOperands operands = random_operands(stream, problem, pass);
  std::vector<float> bias(static_cast<std::size_t>(problem.filters));
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.5f * static_cast<float>(i % 7) - 1;
  if (pass == ConvPass::forward && biased) operands.bias = Tensor::from(stream, {problem.filters}, bias);
  return operands;
}

struct EngineCase {
  Device device;
  std::string engine;
  ConvPass pass;
};

// Returns the engines of the CPU, and those of a GPU if there is one.
std::vector<EngineCase> engines_and_passes(bool with_direct) {
  std::vector<Device> devices{{}};
  if (cuda_device_count() > 0) devices.push_back({Device::Kind::cuda, 0});
  std::vector<EngineCase> cases;
  for (const Device& device : devices)
    for (const auto& engine : make_conv_engines(device))
      for (const ConvPass pass : every_pass)
        if (with_direct || engine->name() != "direct") cases.push_back({device, std::string(engine->name()), pass});
  return cases;
}

std::string name_of(const testing::TestParamInfo<EngineCase>& tested) {
  const EngineCase& param = tested.param;
  std::string name = param.engine + "_" + std::string(to_string(param.pass));
  if (param.device.kind == Device::Kind::cuda) name = "cuda_" + name;
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

// Other engines may reject problems.
bool takes_everything(const ConvEngine& engine) {
  return engine.name() == "direct" || engine.name() == "gemm" || engine.name() == "onednn";
}

class EveryConvEngine : public testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    for (auto& engine : make_conv_engines(GetParam().device))
      if (engine->name() == GetParam().engine) engine_ = std::move(engine);
  }
  void expect_right(const ConvProblem& problem, int samples) {
    const ConvPass pass = GetParam().pass;
    for (const bool biased : {false, true}) {
      SCOPED_TRACE(to_string(problem) + (biased ? " with bias" : ""));
      const auto plan = holding_plan(ctx_, *engine_, problem, pass);
      EXPECT_TRUE(plan != nullptr || !(engine_->supports(problem, pass) || takes_everything(*engine_)));
      if (plan == nullptr) continue;
      ConvOperands operands = operands_for(*ctx_.stream, problem, pass, biased);
      dirty_pool(*ctx_.stream);
      plan->run(ctx_, operands);
      EXPECT_LE(conv_error(ctx_, problem, pass, operands, samples), promise(Precision::fp32)) << full_name(*plan);
    }
  }
  Context ctx_{GetParam().device};
  std::unique_ptr<ConvEngine> engine_;
};

float largest(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

// All engines except the reference, which is too slow for large layers.
class FastConvEngine : public EveryConvEngine {};

}  // namespace

TEST_P(EveryConvEngine, AgreesWithReferenceOnAwkwardProblems) {
  for (const ConvProblem& problem : awkward_problems()) expect_right(problem, std::numeric_limits<int>::max());
}

TEST_P(FastConvEngine, MatchesReferenceOnAlexnetAndOverfeat) {
  const std::vector<ConvProblem> layers = conv_problems(
      {"2x3x224x224 * 64x3x11x11 stride 4 pad 2", "2x64x27x27 * 192x64x5x5 pad 2", "2x192x13x13 * 384x192x3x3 pad 1",
       "2x384x13x13 * 256x384x3x3 pad 1", "2x256x13x13 * 256x256x3x3 pad 1", "2x3x231x231 * 96x3x11x11 stride 4",
       "2x96x28x28 * 256x96x5x5", "2x256x12x12 * 512x256x3x3 pad 1", "2x512x12x12 * 1024x512x3x3 pad 1",
       "2x1024x12x12 * 1024x1024x3x3 pad 1", "34x34x12x12 * 36x34x3x3 pad 1"});
  for (const ConvProblem& problem : layers) expect_right(problem, 100);
}

TEST_P(FastConvEngine, AgreesWithReferenceOnLargeProblems) {
  for (const char* problem : {"1x1x320x480 * 1x1x9x9 pad 4", "2x720x9x9 * 720x240x2x2 stride 4 pad 1 groups 3",
                              "1x64x10x10 * 128x16x3x3 pad 1 groups 4", "1x64x32x32 * 3x64x9x9 pad 4"})
    expect_right(conv_problem(problem), 100);
}

// Whatever the values of an image, filter or channel: results that do not depend on it stay bitwise identical, or equal
// up to rounding if the plan's order of summation varies from run to run.
TEST_P(EveryConvEngine, KeepsImagesAndFiltersIndependent) {
  const ConvPass pass = GetParam().pass;
  Stream& stream = *ctx_.stream;
  for (const ConvProblem& problem :
       conv_problems({"5x3x9x10 * 18x3x3x3 pad 1", "4x16x16x16 * 16x16x5x5 pad 2", "3x33x9x9 * 34x33x3x3 pad 1",
                      "2x16x40x23 * 17x16x7x5 pad 3x2", "3x6x9x9 * 10x3x3x3 pad 1 groups 2",
                      "3x5x13x12 * 7x5x3x3 stride 2 pad 1", "35x4x9x9 * 4x1x5x5 pad 2 groups 4",
                      "3x37x9x8 * 37x1x5x5 pad 2 groups 37", "35x32x9x9 * 34x32x3x3 pad 1"})) {
    const auto plan = holding_plan(ctx_, *engine_, problem, pass);
    if (plan == nullptr) continue;
    ConvOperands operands = operands_for(stream, problem, pass, true);
    plan->run(ctx_, operands);
    const std::vector<float> alone = written(pass, operands).to_vector(stream);
    const float rounding = plan->facts().deterministic ? 0 : 1e-5f * largest(alone);
    const PassPlaces places = places_of(problem, pass);
    for (const float other : {1e20f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      for (const bool rows : {true, false}) {
        const PlaceOf place = rows ? places.row : places.column,
                      result = rows ? places.result_row : places.result_column;
        SCOPED_TRACE(full_name(*plan) + ", " + to_string(problem) + (rows ? ", row " : ", column ") +
                     std::to_string(place.count / 2) + " is " + std::to_string(other));
        ConvOperands spoilt = operands;
        Tensor& factor = rows ? (pass == ConvPass::forward ? spoilt.x : spoilt.y)
                              : (pass == ConvPass::backward_weight ? spoilt.x : spoilt.w);
        std::vector<float> values = factor.to_vector(stream);
        for (std::size_t i = 0; i < values.size(); ++i)
          if (place(static_cast<std::int64_t>(i)) == place.count / 2) values[i] = other;
        factor = Tensor::from(stream, factor.shape(), values);
        plan->run(ctx_, spoilt);
        const std::vector<float> found = written(pass, spoilt).to_vector(stream);
        std::int64_t changed = 0;
        for (std::size_t i = 0; i < found.size(); ++i)
          changed +=
              result(static_cast<std::int64_t>(i)) != place.count / 2 && !(std::abs(found[i] - alone[i]) <= rounding);
        EXPECT_EQ(changed, 0) << "of " << found.size();
      }
  }
}

TEST_P(FastConvEngine, MeetsErrorLimitForLargeBatches) {
  // 40,000 terms per element; an odd batch, so that its slices differ in size.
  expect_right(conv_problem("41x3x32x32 * 16x3x3x3 pad 1"), 200);
  expect_right(conv_problem("165x32x8x8 * 32x32x1x1"), 200);
  expect_right(conv_problem("65x2x56x56 * 2x1x3x3 pad 1 groups 2"), 200);
}

TEST_P(EveryConvEngine, UsesAtMostReportedWorkspace) {
  const ConvPass pass = GetParam().pass;
  for (const ConvProblem& problem : conv_problems({"4x32x14x14 * 48x32x3x3", "4x64x14x14 * 48x64x1x1",
                                                   "4x6x29x27 * 16x6x5x5 stride 2", "7x32x31x31 * 8x32x3x3 pad 1"})) {
    EXPECT_TRUE(engine_->supports(problem, pass) || !takes_everything(*engine_));
    if (!engine_->supports(problem, pass)) continue;
    ConvOperands operands = operands_for(*ctx_.stream, problem, pass, true);
    run(*engine_, ctx_, problem, pass, operands);                                    // which may set something up
    for (Tensor* tensor : {&operands.x, &operands.w, &operands.y}) tensor->write();  // nothing kept holds any more
    const std::size_t before = ctx_.stream->memory().in_use;
    ctx_.stream->reset_peak();
    run(*engine_, ctx_, problem, pass, operands);
    const std::size_t rounding = std::size_t(6) << 16;  // the pool's, of at most six blocks
    EXPECT_LE(ctx_.stream->memory().peak - before, scratch_bytes(*engine_, problem, pass) + rounding)
        << to_string(problem);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryConvEngine, testing::ValuesIn(engines_and_passes(true)), name_of);
INSTANTIATE_TEST_SUITE_P(All, FastConvEngine, testing::ValuesIn(engines_and_passes(false)), name_of);

TEST(ConvEngines, DirectSupportsEverything) {
  const auto engines = make_conv_engines({});
  EXPECT_NE(engines.front()->name(), "direct");
  for (const auto& engine : engines) {
    if (engine->name() != "direct" && engine->name() != "gemm") continue;
    for (const ConvProblem& problem : awkward_problems())
      for (const ConvPass pass : every_pass) EXPECT_TRUE(engine->supports(problem, pass));
  }
}

TEST(ConvEngines, ReferenceIsCrossCorrelation) {
  // x is 1x1x3x3 = 1..9, w is 1x1x2x2, bias 100.
  const ConvProblem problem = conv_problem("1x1x3x3 * 1x1x2x2");
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 10, 100, 1000}, bias[] = {0.5f}, grad_y[] = {1, 0, 0, 2};
  EXPECT_EQ(conv_reference(problem, ConvPass::forward, x, w, nullptr, bias, 0), 1 + 20 + 400 + 5000 + 0.5);
  EXPECT_EQ(conv_reference(problem, ConvPass::forward, x, w, nullptr, nullptr, 3), 5 + 60 + 800 + 9000);
  // The first output reads the middle input through the last tap, the last output through the first tap.
  EXPECT_EQ(conv_reference(problem, ConvPass::backward_input, nullptr, w, grad_y, nullptr, 4), 1000 + 2 * 1);
  EXPECT_EQ(conv_reference(problem, ConvPass::backward_weight, x, nullptr, grad_y, nullptr, 1), 2 * 1 + 6 * 2);
}

TEST(ConvEngines, ReportUnwrittenElement) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x2x4x4 * 1x2x1x1");
  const ConvOperands operands = operands_for(*ctx.stream, problem, ConvPass::forward, false);
  EXPECT_FALSE(conv_error(ctx, problem, ConvPass::forward, operands, 10) <= 1);
}

TEST(ConvEngines, BackwardInputReadsSameGradient) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x16x10x10 * 16x16x3x3");
  for (const auto& engine : make_conv_engines({})) {
    if (!engine->supports(problem, ConvPass::backward_weight)) continue;
    ConvOperands weight = operands_for(*ctx.stream, problem, ConvPass::backward_weight, false);
    ConvOperands input = operands_for(*ctx.stream, problem, ConvPass::backward_input, false);
    input.y = weight.y;
    for (const float changed : {0.0f, 3.0f}) {  // the second time the gradient changes in between
      run(*engine, ctx, problem, ConvPass::backward_weight, weight);
      if (changed != 0) ctx.stream->fill(input.y.write(), 100, changed);
      if (!engine->supports(problem, ConvPass::backward_input)) continue;
      run(*engine, ctx, problem, ConvPass::backward_input, input);
      EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_input, input, 1000), 2e-5) << engine->name();
    }
  }
}

// Applies without benchmarks, also in tf32, where products other than by split fp16 may be faster.
TEST(ConvEngines, RuleAvoidsFftFor1x1OnGpu) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  ConvProblem problem = conv_problem("64x512x14x14 * 512x512x1x1");
  problem.precision = Precision::tf32;
  for (const auto& engine : make_conv_engines({Device::Kind::cuda, 0})) {
    const std::string name(engine->name());
    if (name == "fbfft" || name == "cufft") {
      EXPECT_FALSE(engine->pays(problem)) << name;
    }
  }
}

}  // namespace twiddle
