#include <cmath>
#include <filesystem>

#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "models/config/experiment.h"
#include "models/memory_plan.h"
#include "models/training/train_step.h"
#include "models/training/weight_average.h"
#include "tests/models/small_run.h"
#include "tests/support/every_device.h"
#include "tests/support/thread_ranks.h"

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

  SixteenBitRun(const Device& device, const std::string& precision, bool capture = false, const char* config = network)
      : experiment(load_experiment_text(config, "net.yaml",
                                        {{"device", to_string(device), "--set"},
                                         {"deterministic", "true", "--set"},
                                         {"precision", precision, "--set"}})),
        ctx(device, 7),
        step(ctx, *experiment.model.net, *experiment.loss, *experiment.optimizer, {.capture = capture}) {
    experiment.model.net->initialize(ctx);
  }

  const Sequential& net() const { return *experiment.model.net; }

  Batch batch() const {
    const RandomSequence random{5};
    std::vector<float> pixels(12 * 2 * 8 * 8);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = random.normal(static_cast<std::int64_t>(i));
    return {Tensor::from(*ctx.stream, {12, 2, 8, 8}, pixels),
            Tensor::from<std::int32_t>(*ctx.stream, {12}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}),
            {}};
  }

  std::vector<float> losses(int steps, double rate = 0.05) {
    const Batch same = batch();
    std::vector<float> found;
    for (int i = 0; i < steps; ++i) found.push_back(step.run(same, rate).to_vector(*ctx.stream).front());
    return found;
  }

  std::vector<std::vector<float>> weights() const {
    std::vector<std::vector<float>> all;
    for (const Parameter* parameter : net().parameters())
      all.push_back(parameter->variable.value().to_vector(*ctx.stream));
    return all;
  }

  std::vector<float> output() {
    const EvaluationMode evaluates(ctx);
    return net().forward(ctx, Variable(batch().images)).value().to_vector(*ctx.stream);
  }

  // The output of a network that has never had other weights.
  std::vector<float> fresh_output() const {
    SixteenBitRun fresh(ctx.stream->device(), "bf16");
    const std::vector<std::vector<float>> values = weights();
    for (std::size_t i = 0; i < values.size(); ++i) {
      Parameter& parameter = *fresh.net().parameters()[i];
      parameter.variable.value() = Tensor::from(*fresh.ctx.stream, parameter.shape, values[i]);
    }
    return fresh.output();
  }
};

// Relative L2 difference of how far two trainings have moved their weights.
double difference_of_moves(const SixteenBitRun& a, const SixteenBitRun& b,
                           const std::vector<std::vector<float>>& start) {
  const std::vector<std::vector<float>> of_a = a.weights(), of_b = b.weights();
  double apart = 0, moved = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (!a.net().parameters()[i]->trainable) continue;
    for (std::size_t k = 0; k < start[i].size(); ++k) {
      apart += std::pow(static_cast<double>(of_a[i][k]) - of_b[i][k], 2);
      moved += std::pow(static_cast<double>(of_a[i][k]) - start[i][k], 2);
    }
  }
  return std::sqrt(apart / moved);
}

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

// Its result is cast, as losses read f32.
TEST_P(EveryDevice, SixteenBitsEndInBlock) {
  const Experiment experiment = load_experiment_text(
      "version: 1\n"
      "model: {input: [1, 4, 4], layers: [residual: {layers: [conv2d: {filters: 1, kernel: 3, pad: 1}]}]}\n"
      "train: {loss: mean_squared_error}\n",
      "net.yaml", {{"device", to_string(GetParam()), "--set"}, {"precision", "fp16", "--set"}});
  Context ctx(GetParam());
  experiment.model.net->initialize(ctx);
  EXPECT_EQ(experiment.model.net->items().back().layer->output_type(), DType::f32);
  TrainStep step(ctx, *experiment.model.net, *experiment.loss, *experiment.optimizer, {});
  const Tensor images = Tensor::filled(*ctx.stream, {2, 1, 4, 4}, 1);
  const auto loss = [&] { return step.run({images, images, {}}, 0.1).to_vector(*ctx.stream).front(); };
  const float first = loss();
  EXPECT_LT(loss(), first);
}

// Steps so small that weights of bf16 would not move.
TEST_P(EveryDevice, SmallStepsMoveWeightsAsInFp32) {
  constexpr const char* layers =
      "version: 1\n"
      "model:\n"
      "  input: [2, 8, 8]\n"
      "  layers: [conv2d: {filters: 4, kernel: 3, stride: 2}, batch_norm, relu, linear: {outputs: 3}]\n";
  SixteenBitRun fp32(GetParam(), "fp32", false, layers), bf16(GetParam(), "bf16", false, layers);
  const std::vector<std::vector<float>> start = fp32.weights();
  fp32.losses(500, 1e-6);
  bf16.losses(500, 1e-6);
  const double difference = difference_of_moves(fp32, bf16, start);
  EXPECT_LT(difference, 0.05);
  EXPECT_GT(difference, 0);
}

// Copies of 16 bits are made before each change.
TEST_P(EveryDevice, SixteenBitCopiesFollowWeights) {
  SixteenBitRun run(GetParam(), "bf16", true), other(GetParam(), "bf16");
  other.losses(3);
  const std::string folder = fresh_path("sixteen_bit_copies");
  std::filesystem::create_directories(folder);
  const std::string weights = folder + "/weights.safetensors";
  save_weights(weights, other.ctx, other.net(), {});
  write_checkpoint(folder, other.ctx, other.net(), {*other.experiment.optimizer, other.step.optimizer_state()}, {}, {});

  std::vector<float> before = run.output();
  const auto expect_followed = [&](const char* change) {
    EXPECT_NE(run.output(), before) << change;
    EXPECT_EQ(run.output(), run.fresh_output()) << change;
    before = run.output();
  };
  const auto take_steps = [&](int steps) {
    run.losses(steps);
    run.step.drop_graphs();  // as before a validation
  };
  take_steps(1);
  expect_followed("a step");
  take_steps(6);
  expect_followed("more steps, captured on a GPU");
  load_weights(weights, run.ctx, run.net());
  expect_followed("load_weights");
  take_steps(1);
  expect_followed("a step");
  take_weights(weights, run.ctx, run.net());
  expect_followed("take_weights");
  take_steps(1);
  expect_followed("a step");
  restore_checkpoint(folder, run.ctx, run.net(), *run.experiment.optimizer);
  expect_followed("restore_checkpoint");

  WeightAverage average(*run.ctx.stream, run.net(), 0.5);
  for (int i = 0; i < 2; ++i) {
    average.update(*run.ctx.stream,
                   {Tensor::filled(*run.ctx.stream, {1}, static_cast<float>(average.next_share())), {}});
    average.count();
    take_steps(1);
  }
  before = run.output();
  average.exchange();
  expect_followed("the average");
  average.exchange();
  expect_followed("the weights again");
}

TEST(SixteenBits, CopiesFollowWeightsOnRanks) {
  on_ranks(2, [](const std::shared_ptr<Communicator>& ranks) {
    SixteenBitRun run({}, "bf16");
    TrainStep step(run.ctx, run.net(), *run.experiment.loss, *run.experiment.optimizer, {.ranks = ranks.get()});
    Batch batch = run.batch();
    batch.rows = {ranks->rank() * 12, 24};
    std::vector<float> before = run.output();
    for (int i = 0; i < 3; ++i) {
      step.run(batch, 0.05);
      step.all_gather_weights();
      EXPECT_NE(run.output(), before);
      EXPECT_EQ(run.output(), run.fresh_output());
      before = run.output();
    }
  });
}

}  // namespace twiddle
