#include "fft/spectral_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tests/support/conv_problem.h"
#include "tests/support/depthwise_check.h"
#include "tests/support/depthwise_problem.h"
#include "tests/support/every_device.h"
#include "tests/support/limits.h"

namespace twiddle {

namespace {

// Null on a CPU and in a build without CUDA.
std::unique_ptr<ConvEngine> engine_on(Device device, std::shared_ptr<FrequencyBuffers> buffers, std::size_t limit) {
  return device.kind == Device::Kind::cuda ? make_depthwise_fft_engine(device, std::move(buffers), limit) : nullptr;
}
std::unique_ptr<ConvEngine> engine_on(Device device) {
  return engine_on(device, std::make_shared<FrequencyBuffers>(plenty), plenty);
}

// A plane of `size`, three images, two channels, and a kernel as large as its plane allows.
ConvProblem problem_of_size(int size) {
  const int kernel = size / 2 | 1, pad = kernel / 2, plane = size - pad;
  ConvProblem p{.batch = 3, .channels = 2, .height = plane, .width = plane - 1, .filters = 2, .kernel_h = kernel};
  p.kernel_w = kernel, p.pad_h = p.pad_w = pad, p.groups = 2;
  return p;
}

// Returns the engine's first plan for the pass that shares spectra with other passes, or null.
std::shared_ptr<const ConvPlan> shared_plan(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  for (const auto& plan : engine.plans(problem, pass))
    if (!plan->facts().shares.empty()) return plan;
  return nullptr;
}

// The three passes of a layer on the same x, w and gradient.
struct SharedStep {
  SharedStep(Context& step_ctx, const ConvEngine& engine, const ConvProblem& step_problem)
      : ctx(step_ctx), problem(step_problem) {
    for (const ConvPass pass : every_pass) {
      operands[std::size_t(pass)] = random_operands(*ctx.stream, problem, pass);
      plans[std::size_t(pass)] = shared_plan(engine, problem, pass);
    }
    auto& [forward, input, weight] = operands;
    input.w = forward.w, weight.x = forward.x, weight.y = input.y;
  }

  // Checks every element, whatever spectra the pass finds in the buffers.
  void run(ConvPass pass) {
    SCOPED_TRACE(to_string(problem) + ", " + std::string(to_string(pass)));
    ConvOperands& here = operands[std::size_t(pass)];
    ASSERT_NE(plans[std::size_t(pass)], nullptr);
    Tensor& result = pass == ConvPass::forward ? here.y : pass == ConvPass::backward_input ? here.x : here.w;
    ctx.stream->fill(result.write(), result.size(), not_a_number);
    plans[std::size_t(pass)]->run(ctx, here);
    const double allowed = (result.size() < 200 ? 3 : 1) * promise(Precision::fp32);  // terms may nearly cancel
    EXPECT_LE(conv_error(ctx, problem, pass, here, all_samples), allowed);
  }

  Context& ctx;
  ConvProblem problem;
  std::array<ConvOperands, 3> operands;
  std::array<std::shared_ptr<const ConvPlan>, 3> plans;
};

std::int64_t count_of_nan(const std::vector<float>& values, std::int64_t first, std::int64_t count) {
  return std::count_if(values.begin() + first, values.begin() + first + count, [](float v) { return std::isnan(v); });
}

}  // namespace

TEST_P(EveryDevice, DepthwiseFftMatchesReferenceOnRandomProblems) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  int runs = 0;
  for (int number = 0; number < random_depthwise_problems(); ++number) {
    const ConvProblem problem = random_depthwise_problem(number, 61, 1, 1);
    for (const ConvPass pass : every_pass)
      for (const auto& plan : engine->plans(problem, pass)) {
        SCOPED_TRACE(full_name(*plan));
        expect_depthwise_pass(ctx, problem, pass, false, [&](ConvOperands& operands) { plan->run(ctx, operands); });
        ++runs;
      }
  }
  EXPECT_GT(runs, random_depthwise_problems());
}

TEST_P(EveryDevice, DepthwiseFftMatchesReferenceInEverySize) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  for (int size = 2; size <= 96; ++size) {
    const ConvProblem problem = problem_of_size(size);
    for (const ConvPass pass : every_pass) {
      for (const auto& plan : {first_plan(*engine, problem, pass), shared_plan(*engine, problem, pass)}) {
        SCOPED_TRACE(full_name(*plan));
        expect_depthwise_pass(ctx, problem, pass, false, [&](ConvOperands& operands) { plan->run(ctx, operands); });
      }
    }
  }
}

// In any order of the passes, each spectrum is computed once, by the first pass that reads the planes.
TEST_P(EveryDevice, DepthwiseFftSharesSpectraInAnyOrder) {
  const auto buffers = std::make_shared<FrequencyBuffers>(plenty);
  const auto engine = engine_on(GetParam(), buffers, plenty);
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  using enum ConvPass;
  for (const int size : {14, 27, 48, 72, 96})
    for (const std::array<ConvPass, 3>& order : {std::array{forward, backward_input, backward_weight},
                                                 {forward, backward_weight, backward_input},
                                                 {backward_weight, backward_input, forward}}) {
      SharedStep step(ctx, *engine, problem_of_size(size));
      buffers->forget();
      buffers->reset_use();
      for (const ConvPass pass : order) step.run(pass);
      EXPECT_EQ(buffers->use().computed, 3);
      EXPECT_EQ(buffers->use().reused, 3);
    }
}

TEST_P(EveryDevice, DepthwiseFftRecomputesSpectraOfChangedTensors) {
  const auto buffers = std::make_shared<FrequencyBuffers>(plenty);
  const auto engine = engine_on(GetParam(), buffers, plenty);
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  SharedStep step(ctx, *engine, problem_of_size(40));
  for (const ConvPass pass : every_pass) step.run(pass);
  Tensor& x = step.operands[0].x;
  ctx.stream->fill(x.write(), x.size() / 2, 3);
  step.run(ConvPass::backward_weight);
  EXPECT_EQ(buffers->use().computed, 4) << "y's is still there";
  Tensor& w = step.operands[0].w;
  ctx.stream->fill(w.write(), w.size() / 2, 3);
  step.run(ConvPass::backward_input);
  step.run(ConvPass::forward);
  EXPECT_EQ(buffers->use().computed, 5) << "w's alone is new";
}

TEST_P(EveryDevice, DepthwiseFftKeepsOnlyFiltersInEvaluation) {
  const auto buffers = std::make_shared<FrequencyBuffers>(plenty);
  const auto engine = engine_on(GetParam(), buffers, plenty);
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  const EvaluationMode evaluation(ctx);
  SharedStep step(ctx, *engine, problem_of_size(40));
  for (int batch = 0; batch < 2; ++batch) step.run(ConvPass::forward);
  EXPECT_EQ(buffers->use().computed, 1);
  EXPECT_EQ(buffers->use().reused, 1);
}

// If the budget only fits the largest pass, spectra are evicted and recomputed. With a smaller budget no plan shares.
TEST_P(EveryDevice, DepthwiseFftSharesWithinItsBudget) {
  if (engine_on(GetParam()) == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  const ConvProblem problem = problem_of_size(40);
  const std::size_t most =
      shared_plan(*engine_on(GetParam()), problem, ConvPass::backward_weight)->facts().scratch_bytes;
  const auto buffers = std::make_shared<FrequencyBuffers>(most);
  const auto engine = engine_on(GetParam(), buffers, plenty);
  SharedStep first(ctx, *engine, problem), second(ctx, *engine, problem);
  for (const ConvPass pass : every_pass) first.run(pass), second.run(pass);
  EXPECT_LE(buffers->use().peak, most);
  for (const std::size_t limit : {most - 1, std::size_t(0)})
    EXPECT_EQ(shared_plan(*engine_on(GetParam(), buffers, limit), problem, ConvPass::forward), nullptr);
}

TEST_P(EveryDevice, DepthwiseFftSharesNothingIfWeightsAreFrozen) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  ConvProblem problem = problem_of_size(40);
  ASSERT_NE(shared_plan(*engine, problem, ConvPass::forward), nullptr);
  problem.weight_gradient = false;
  EXPECT_EQ(shared_plan(*engine, problem, ConvPass::forward), nullptr);
}

TEST_P(EveryDevice, DepthwiseFftKeepsNanInItsPlane) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  const ConvProblem problem = problem_of_size(72);
  SharedStep step(ctx, *engine, problem);
  std::vector<float> x = step.operands[0].x.to_vector(*ctx.stream);
  const std::int64_t plane_of_nan = 3;  // image 1, channel 1
  x[std::size_t(plane_of_nan * problem.height * problem.width + 5)] = not_a_number;
  const Tensor with_nan = Tensor::from(*ctx.stream, problem.input_shape(), x);
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_weight}) {
    ConvOperands operands = step.operands[std::size_t(pass)];
    operands.x = with_nan;
    step.plans[std::size_t(pass)]->run(ctx, operands);
    const bool forward = pass == ConvPass::forward;
    const std::vector<float> result = (forward ? operands.y : operands.w).to_vector(*ctx.stream);
    const std::int64_t planes = forward ? 6 : 2, size = std::int64_t(result.size()) / planes;
    for (std::int64_t plane = 0; plane < planes; ++plane)
      EXPECT_EQ(count_of_nan(result, plane * size, size) > 0, plane == (forward ? plane_of_nan : 1)) << plane;
  }
}

TEST_P(EveryDevice, DepthwiseFftRejectsOtherProblems) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  for (const ConvProblem& problem :
       conv_problems({"2x4x8x8 * 4x4x3x3 pad 1", "2x4x8x8 * 4x2x3x3 pad 1 groups 2", "2x4x8x8 * 8x1x3x3 groups 4",
                      "2x4x9x9 * 4x1x3x3 stride 2 pad 1 groups 4", "2x4x90x9 * 4x1x21x21 pad 10 groups 4"}))
    for (const ConvPass pass : every_pass) EXPECT_FALSE(engine->supports(problem, pass)) << to_string(problem);
}

}  // namespace twiddle
