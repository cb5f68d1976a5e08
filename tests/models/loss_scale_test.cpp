#include <cmath>
#include <optional>

#include "framework/tensor_ops.h"
#include "models/config/experiment.h"
#include "models/training/train_step.h"
#include "tests/support/every_device.h"
#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

constexpr const char* scaled_network =
    "version: 1\n"
    "precision: fp16\n"
    "deterministic: true\n"
    "model:\n"
    "  input: [2, 8, 8]\n"
    "  layers:\n"
    "    - conv2d: {filters: 4, kernel: 3, pad: 1}\n"
    "    - batch_norm\n"
    "    - relu\n"
    "    - linear: {outputs: 3}\n"
    "data: {train: {format: synthetic, images: 9, classes: 3}}\n"
    "train: {optimizer: adam, learning_rate: 0.01}\n";

// Steps of fp16 training, of one rank of those given or of one process.
struct ScaledRun {
  static constexpr std::int64_t images = 6;  // of all ranks
  Experiment experiment;
  Context ctx;
  WeightAverage average;
  StepOptions options;
  std::optional<TrainStep> step;
  Batch places[2];

  ScaledRun(const Device& device, const StepOptions& given)
      : experiment(load_experiment_text(scaled_network, "net.yaml", {{"device", to_string(device), "--set"}})),
        ctx(device, 7),
        average(*ctx.stream, *experiment.model.net, 0.9),
        options(given) {
    experiment.model.net->initialize(ctx);
    options.average = &average;
    begin({1024, true});
  }

  void begin(const LossScale& scale) {
    options.loss_scale = scale;
    step.reset();
    step.emplace(ctx, *experiment.model.net, *experiment.loss, *experiment.optimizer, options);
  }

  // Batches alternate between two places, as a loader's do. In a bad one, the last pixel is infinite.
  float run(int number, bool bad = false) {
    const std::int64_t ranks = options.ranks ? options.ranks->size() : 1,
                       rank = options.ranks ? options.ranks->rank() : 0;
    const std::int64_t here = images / ranks, pixels_here = here * 2 * 8 * 8;
    const RandomSequence random = RandomSequence{5}.split(static_cast<std::uint64_t>(number));
    std::vector<float> pixels;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < pixels_here; ++i) pixels.push_back(random.normal(rank * pixels_here + i));
    for (std::int64_t i = 0; i < here; ++i) labels.push_back(static_cast<std::int32_t>((rank * here + i) % 3));
    if (bad && rank == ranks - 1) pixels.back() = INFINITY;
    Stream& stream = *ctx.stream;
    Batch& batch = places[number % 2];
    if (!batch.images.defined())
      batch = {Tensor(stream, {here, 2, 8, 8}), Tensor::from(stream, {here}, labels), {}, {}};
    if (ranks > 1) batch.rows = {rank * here, images};
    stream.copy(batch.images.write(), pixels.data(), batch.images.bytes());
    return step->run(batch, 0.01).to_vector(stream).at(0);
  }

  // Trained parameters, the state of the optimizer, and the averages. (Batch norm's running averages follow each
  // forward pass.)
  std::vector<std::vector<float>> state() {
    Stream& stream = *ctx.stream;
    step->all_gather_weights();
    std::vector<std::vector<float>> all;
    const auto add_weights = [&] {
      for (const Parameter* parameter : experiment.model.net->parameters())
        if (parameter->trainable) all.push_back(parameter->variable.value().to_vector(stream));
    };
    add_weights();
    for (const auto& [name, tensor] : step->optimizer_state()) all.push_back(tensor.to_vector(stream));
    const AveragedWeights averaged(&average);
    add_weights();
    return all;
  }
};

// A run in which a step has an infinite gradient ends as one that has its scale halved instead of that step.
void expect_skipped_step(const Device& device, StepOptions options) {
  ScaledRun skipping(device, options), without(device, options);
  const int updates = static_cast<int>(options.accumulate);
  int number = 0;
  for (; number < 4 * updates; ++number) EXPECT_EQ(skipping.run(number), without.run(number));
  for (int i = 0; i < updates; ++i) skipping.run(number + i, i == updates - 1);
  number += updates;
  const LossScale now = skipping.step->gradient_scale()->read(*skipping.ctx.stream);
  EXPECT_EQ(now.value, 512);
  EXPECT_EQ(now.good_steps, 0);
  EXPECT_EQ(now.skipped_steps, 1);
  EXPECT_EQ(skipping.state(), without.state());
  without.begin(now);
  for (int i = 0; i < 2 * updates; ++i, ++number) EXPECT_EQ(skipping.run(number), without.run(number));
  EXPECT_EQ(skipping.state(), without.state());
  for (const Parameter* parameter : skipping.experiment.model.net->parameters())
    EXPECT_TRUE(all_finite(*skipping.ctx.stream, parameter->variable.value())) << parameter->name;
  EXPECT_TRUE(std::isfinite(skipping.step->sums().to_vector(*skipping.ctx.stream).at(0)));
}

}  // namespace

TEST_P(EveryDevice, LossScaleSkipsStep) {
  expect_skipped_step(GetParam(), {.capture = false});
  expect_skipped_step(GetParam(), {.clip_norm = 0.1, .capture = true});
}

TEST_P(EveryDevice, LossScaleSkipsAccumulatedStep) {
  expect_skipped_step(GetParam(), {.accumulate = 2, .capture = false});
  expect_skipped_step(GetParam(), {.accumulate = 2, .capture = true});
}

// The infinite pixel is of the last rank.
TEST(LossScale, SkipsStepOnAllRanks) {
  for (const std::int64_t accumulate : {1, 2})
    on_ranks(2, [accumulate](const std::shared_ptr<Communicator>& ranks) {
      ScaledRun run({}, {.accumulate = accumulate, .ranks = ranks.get()});
      const auto update = [&](int number, bool bad) {
        for (int i = 0; i < accumulate; ++i) run.run(static_cast<int>(accumulate) * number + i, bad);
        return run.state();
      };
      update(0, false);
      const auto before = update(1, false);
      EXPECT_EQ(update(2, true), before);
      const LossScale now = run.step->gradient_scale()->read(*run.ctx.stream);
      EXPECT_EQ(now.value, 512);
      EXPECT_EQ(now.skipped_steps, 1);
      EXPECT_NE(update(3, false), before);
      EXPECT_TRUE(std::isfinite(run.step->sums().to_vector(*run.ctx.stream).at(0)));
    });
}

// A first step that is skipped does not leave the average at zero.
TEST(LossScale, AverageBeginsWithSkippedStep) {
  ScaledRun run({}, {});
  run.run(0, true);
  const std::vector<std::vector<float>> state = run.state();
  constexpr std::size_t trained = 6;  // of two layers and batch norm
  EXPECT_EQ(state.front(), state.at(state.size() - trained));
}

TEST(LossScale, EndsRunAtScaleOfOne) {
  ScaledRun run({}, {});
  run.begin({1, true});
  run.run(0);
  const std::vector<std::vector<float>> before = run.state();
  run.run(1, true);
  run.run(2);
  EXPECT_FALSE(std::isfinite(run.step->sums().to_vector(*run.ctx.stream).at(0)));
  EXPECT_EQ(run.state(), before);
}

// The update divides gradients by the scale, which is a power of two: only what underflows can differ.
TEST_P(EveryDevice, LossScaleDoesNotChangeTraining) {
  const auto last_loss = [](ScaledRun& run) {
    float loss = 0;
    for (int i = 0; i < 30; ++i) loss = run.run(i % 2);
    return loss;
  };
  ScaledRun fp16(GetParam(), {.capture = true}), scaled_less(GetParam(), {.capture = true});
  scaled_less.begin({16, true});
  const float loss = last_loss(fp16);
  EXPECT_LT(loss, 0.5f);
  EXPECT_NEAR(loss, last_loss(scaled_less), 0.02f);
}

}  // namespace twiddle
