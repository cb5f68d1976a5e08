#include "models/memory_plan.h"

#include <gtest/gtest.h>

#include "fft/pair_product.h"
#include "framework/error.h"
#include "layers/softmax_loss.h"
#include "tests/models/built_model.h"
#include "tests/models/small_training.h"

namespace twiddle {
namespace {

TEST(MemoryPlan, CountsByKind) {
  const Model model = model_of("[1, 8, 8]", "    - linear: {outputs: 10}\n");
  const MemoryPlan plan = plan_memory(model, {4, 2});
  EXPECT_EQ(plan.weights, 650u * 4);
  EXPECT_EQ(plan.gradients, 650u * 4);
  EXPECT_EQ(plan.optimizer, 2u * 650 * 4);
  EXPECT_EQ(plan.workspace, 0u);
  EXPECT_GE(plan.activations, 4u * 10 * 4);
}

TEST(MemoryPlan, CountsOnlyOwnShardOfOptimizer) {
  const Model model = model_of("[1, 8, 8]", "    - linear: {outputs: 10}\n");
  const Experiment experiment = small_experiment({{"train.optimizer", "adam", "--set"}});
  Config::Train train = experiment.config.train;
  const auto optimizer_of = [&](int ranks) {
    return plan_memory(model, {4, kept_tensors(train, *experiment.optimizer, ranks)}).optimizer;
  };
  EXPECT_EQ(optimizer_of(1), 2u * 650 * 4);
  EXPECT_EQ(optimizer_of(4), 2u * 650);
  train.ema_decay = 0.9;  // each rank keeps all of the average
  EXPECT_EQ(optimizer_of(4), 2u * 650 + 650 * 4);
}

TEST(MemoryPlan, CountsReplacedActivationsOnce) {
  const std::string convolution = "    - conv2d: {filters: 64, kernel: 3, pad: 1}\n";
  const Model plain = model_of("[64, 32, 32]", convolution + "    - flatten\n");
  const Model with_relu = model_of("[64, 32, 32]", convolution + "    - relu\n    - flatten\n");
  // relu keeps its own output; the convolution's goes back to the pool.
  EXPECT_LE(plan_memory(with_relu, {1, 0}).activations, plan_memory(plain, {1, 0}).activations + 64 * 32 * 32 * 4);
}

// Peak memory of a forward and a backward pass without the images: of the second step, which selects no plans.
std::size_t peak_of_a_step(const Model& model, std::int64_t batch) {
  Context ctx(model.device);
  model.net->initialize(ctx);
  Shape shape = model.net->input_shape();
  shape.insert(shape.begin(), batch);
  const Variable x(Tensor::filled(*ctx.stream, shape, 1));
  const Tensor labels =
      Tensor::from<std::int32_t>(*ctx.stream, {batch}, std::vector<std::int32_t>(static_cast<std::size_t>(batch)));
  std::size_t before = 0;
  for (int step = 0; step < 2; ++step) {
    for (Parameter* parameter : model.net->parameters()) parameter->variable.clear_grad();
    before = ctx.stream->memory().in_use;
    ctx.stream->reset_peak();
    ctx.tape.backward(ctx, softmax_loss(ctx, model.net->forward(ctx, x), labels));
  }
  return ctx.stream->memory().peak - before;
}

TEST(MemoryPlan, MatchesStepThroughPaths) {
  constexpr double small = 32768;  // values per channel, which the plan omits
  const std::string stem = "    - conv2d: {filters: 8, kernel: 1}\n", head = "    - linear: {outputs: 2}\n";
  for (const std::string layers : {
           "    - residual: {layers: [tanh, tanh, tanh, tanh]}\n",
           "    - residual: {layers: [sigmoid, batch_norm, tanh], shortcut: [tanh, sigmoid, tanh]}\n    - relu\n",
           "    - parallel: {paths: [[tanh], [sigmoid, sigmoid, sigmoid], [avg_pool: {kernel: 1}], []]}\n",
           "    - parallel: {paths: [[tanh], [], [tanh, batch_norm, tanh]], join: multiply}\n    - tanh\n",
           "    - parallel: {paths: [[], [avg_pool: {kernel: 2}, parallel: {paths: [[], [max_pool: {kernel: 2}, "
           "conv2d: "
           "{filters: 32, kernel: 1, pad: 2}]]}, conv2d: {filters: 9, kernel: 1, pad: 4}]]}\n",
       }) {
    for (const std::string precision : {"", "precision: bf16\n"}) {
      const std::int64_t batch = precision.empty() ? 16 : 256;  // a cast may be half of a block below 1 MiB
      const Model model = model_of("[2, 16, 16]", stem + layers + head + precision, {}, "direct");
      const MemoryPlan plan = plan_memory(model, {batch, 0});
      const auto taken = static_cast<double>(peak_of_a_step(model, batch));
      const auto planned = static_cast<double>(plan.activations + plan.gradients + plan.workspace);
      EXPECT_GE(planned + small, 0.94 * taken) << layers << precision;
      EXPECT_LE(planned, 1.25 * taken) << layers << precision;
    }
  }
}

// The spectra of the second layer's gradients must be freed before the first layer needs its scratch.
TEST(MemoryPlan, FreesSpectraAfterLastUse) {
  const Model model = model_of("[1, 28, 28]",
                               "    - conv2d: {filters: 20, kernel: 5, engine: gemm}\n    - max_pool: {kernel: 2}\n"
                               "    - conv2d: {filters: 50, kernel: 5, engine: fft}\n    - linear: {outputs: 2}\n");
  const MemoryPlan plan = plan_memory(model, {64, 0});
  EXPECT_LE(static_cast<double>(peak_of_a_step(model, 64)),
            1.1 * static_cast<double>(plan.activations + plan.gradients + plan.workspace + plan.spectra));
}

// Products on tensor cores store at least one factor in split fp16: 512 x 4096 values here.
TEST(MemoryPlan, CountsScratchOfLinearLayers) {
  const Device gpu{Device::Kind::cuda, 0};
  if (tensor_cores(gpu).empty()) GTEST_SKIP() << "no tensor cores";
  const Model model = model_of("[4096, 1, 1]", "    - linear: {outputs: 1024}\n", gpu);
  const MemoryPlan plan = plan_memory(model, {512, 0});
  EXPECT_GE(plan.workspace, 512u * 4096 * 4);
  EXPECT_LE(plan.workspace, 8 * 512u * 4096 * 4);
  EXPECT_EQ(plan.workspace_layer, "fc1");
  EXPECT_GE(static_cast<double>(plan.activations + plan.gradients + plan.workspace),
            0.94 * static_cast<double>(peak_of_a_step(model, 512)));
}

std::string advice_of(const std::string& engine, std::size_t missing) {
  const Model model = model_of(
      "[16, 64, 64]", "    - conv2d: {filters: 16, kernel: 5, pad: 2}\n    - linear: {outputs: 2}\n", {}, engine);
  MemoryUse memory;
  const TrainingSize size{.batch = 8, .optimizer_tensors = 1, .batches = 2};
  memory.in_use = plan_memory(model, size).total() - missing;
  return memory_advice(model, size, memory);
}

TEST(MemoryAdvice, SuggestsBatchAndLimitsThatFit) {
  constexpr std::size_t mib = 1 << 20;
  const std::string unrolled = advice_of("gemm", mib), spectral = advice_of("fft", mib);
  for (const std::string& advice : {unrolled, spectral})
    EXPECT_NE(advice.find("; or, at a batch of 8, --set convolution."), std::string::npos) << advice;
  EXPECT_NE(unrolled.find("workspace_limit=5MiB"), std::string::npos) << unrolled;  // of 16 x 5 x 5 planes, 6.25 MiB
  EXPECT_NE(spectral.find("frequency_budget="), std::string::npos) << spectral;
}

TEST(MemoryAdvice, SuggestsLargestBatchThatFits) {
  const Model model = model_of("[1, 256, 256]", "    - linear: {outputs: 2}\n");
  MemoryUse memory;
  memory.free = plan_memory(model, {45, 0}).total();
  EXPECT_NE(memory_advice(model, {1000, 0}, memory).find(": --batch-size 40"), std::string::npos)
      << memory_advice(model, {1000, 0}, memory);
  memory.free = plan_memory(model, {12, 0}).total();
  EXPECT_NE(memory_advice(model, {1000, 0}, memory).find(": --batch-size 11"), std::string::npos)
      << memory_advice(model, {1000, 0}, memory);
}

TEST(MemoryAdvice, SuggestsNoInsufficientLimit) {
  const std::string advice = advice_of("gemm", std::size_t(13) << 19);  // 6.5 MiB: more than there is scratch
  EXPECT_NE(advice.find(": --batch-size "), std::string::npos) << advice;
  EXPECT_EQ(advice.find("--set"), std::string::npos) << advice;
}

TEST(RequireMemory, RefusesPlanExceedingFreeMemory) {
  const Model model = model_of("[1, 8, 8]", "    - linear: {outputs: 10}\n");
  MemoryUse memory;
  require_memory(model, {4, 2}, memory);  // nothing is known
  memory.free = plan_memory(model, {4, 2}).total();
  require_memory(model, {4, 2}, memory);
  memory.free -= 1;
  EXPECT_THROW(require_memory(model, {4, 2}, memory), OutOfMemory);
  memory.cached = 1;
  require_memory(model, {4, 2}, memory);
}

}  // namespace
}  // namespace twiddle
