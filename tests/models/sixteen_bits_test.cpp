#include <cmath>

#include "models/config/experiment.h"
#include "models/memory_plan.h"
#include "models/training/train_step.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// Layers of most kinds and all joins of paths.
constexpr const char* network =
    "version: 1\n"
    "model:\n"
    "  input: [2, 8, 8]\n"
    "  layers:\n"
    "    - conv2d: {filters: 4, kernel: 3, pad: 1}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - residual: {layers: [conv2d: {filters: 4, kernel: 3, pad: 1}, batch_norm]}\n"
    "    - parallel: {join: concat, paths: [[gelu], [max_pool: {kernel: 1}]]}\n"
    "    - conv_transpose2d: {filters: 4, kernel: 2, stride: 2}\n"
    "    - dropout: {rate: 0.1}\n"
    "    - max_pool: {kernel: 2}\n"
    "    - flatten\n"
    "    - linear: {outputs: 16}\n"
    "    - relu\n"
    "    - linear: {outputs: 3}\n"
    "data: {train: {format: synthetic, images: 9, classes: 3}}\n"
    "train: {optimizer: {sgd: {momentum: 0.9}}, learning_rate: 0.05}\n";

struct SixteenBitRun {
  Experiment experiment;
  Context ctx;
  TrainStep step;

  SixteenBitRun(const Device& device, const std::string& precision, bool capture = false)
      : experiment(load_experiment_text(network, "net.yaml",
                                        {{"device", to_string(device), "--set"},
                                         {"deterministic", "true", "--set"},
                                         {"precision", precision, "--set"}})),
        ctx(device, 7),
        step(ctx, *experiment.model.net, *experiment.loss, *experiment.optimizer, {.capture = capture}) {
    experiment.model.net->initialize(ctx);
  }

  std::vector<float> losses(int steps) {
    const RandomSequence random{5};
    std::vector<float> pixels(12 * 2 * 8 * 8);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = random.normal(static_cast<std::int64_t>(i));
    const Batch batch{Tensor::from(*ctx.stream, {12, 2, 8, 8}, pixels),
                      Tensor::from<std::int32_t>(*ctx.stream, {12}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}),
                      {}};
    std::vector<float> found;
    for (int i = 0; i < steps; ++i) found.push_back(step.run(batch, 0.05).to_vector(*ctx.stream).front());
    return found;
  }
};

}  // namespace

TEST_P(EveryDevice, SixteenBitsTrainAsFp32) {
  SixteenBitRun fp32(GetParam(), "fp32"), bf16(GetParam(), "bf16");
  const std::vector<float> expected = fp32.losses(30), found = bf16.losses(30);
  EXPECT_NEAR(found.front(), expected.front(), 0.01 * expected.front());
  EXPECT_NE(found.front(), expected.front());
  EXPECT_LT(expected.back(), 0.5 * expected.front());
  EXPECT_LT(found.back(), 0.5 * found.front());
  for (const Parameter* parameter : bf16.experiment.model.net->parameters())
    EXPECT_EQ(parameter->variable.value().type(), DType::f32) << parameter->name;
}

TEST_P(EveryDevice, SixteenBitsAreBitwiseReproducible) {
  SixteenBitRun eager(GetParam(), "bf16"), captured(GetParam(), "bf16", true);
  EXPECT_EQ(eager.losses(8), captured.losses(8));
}

// Copies of 16 bits come on top of the fp32 weights. Each pass makes new casts, so no spectra are kept.
TEST(SixteenBits, MemoryPlanCountsCopiesAndNoSpectra) {
  const SixteenBitRun fp32({}, "fp32"), bf16({}, "bf16");
  const MemoryPlan plain = plan_memory(fp32.experiment.model, {12, 1}),
                   plan = plan_memory(bf16.experiment.model, {12, 1});
  EXPECT_EQ(plan.weights, plain.weights * 3 / 2);
  EXPECT_EQ(plan.gradients, plain.gradients);
  EXPECT_GT(plan.workspace, plain.workspace);
  EXPECT_EQ(plan.spectra, 0u);
}

// f32 begins with the last convolution.
TEST(SixteenBits, OutputIsNotRounded) {
  const Experiment experiment = load_experiment_text(
      "version: 1\n"
      "model:\n"
      "  input: [1, 4, 4]\n"
      "  layers: [conv2d: {filters: 2, kernel: 3}, relu, conv2d: {filters: 2, kernel: 1}, global_avg_pool, dropout]\n"
      "precision: bf16\n"
      "data: {train: {format: synthetic, images: 4}}\n",
      "net.yaml");
  std::vector<DType> types;
  for (const Sequential::Item& item : experiment.model.net->items()) types.push_back(item.layer->output_type());
  EXPECT_EQ(types, (std::vector<DType>{DType::bf16, DType::bf16, DType::f32, DType::f32, DType::f32}));
}

TEST_P(EveryDevice, SixteenBitsReadChangedWeights) {
  SixteenBitRun training(GetParam(), "bf16");
  const EvaluationMode evaluates(training.ctx);
  Stream& stream = *training.ctx.stream;
  const Variable x(Tensor::filled(stream, {1, 2, 8, 8}, 1));
  const auto output = [&] { return training.experiment.model.net->forward(training.ctx, x).value(); };
  const std::vector<float> before = output().to_vector(stream);
  EXPECT_EQ(output().type(), DType::f32);
  EXPECT_EQ(output().to_vector(stream), before);
  Tensor& weight = training.experiment.model.net->parameters().front()->variable.value();
  stream.fill(weight.write(), weight.size(), 0.5f);  // as a checkpoint or an average is loaded
  EXPECT_NE(output().to_vector(stream), before);
}

}  // namespace twiddle
