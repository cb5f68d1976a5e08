#include "models/training/trainer.h"
#include "layers/conv/tuner/measuring.h"
#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "models/evaluation/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <tuple>

#include "framework/error.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"
#include "tests/models/small_training.h"
#include "tests/support/conv_problem.h"
#include "tests/support/copy_of.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

TEST(Trainer, LearnsSyntheticData) {
  Trainer trainer(small_experiment({{"train.epochs", "12", "--epochs"}}), {});
  Losses losses;
  std::atomic<bool> stop = false;
  EXPECT_EQ(trainer.run({&losses}, stop), Trainer::End::finished);
  EXPECT_EQ(losses.steps.size(), 12u * 5);  // 90 images in batches of 20: the last has 10
  EXPECT_LT(losses.epochs.back(), 0.7 * losses.epochs.front());
  EXPECT_EQ(trainer.last_validation()->images, 40);
}

// No choice depends on timing if the engine is named, for the model or for a layer.
TEST_P(EveryDevice, TrainerIsReproducibleWithNamedEngines) {
  const std::string engine = GetParam().kind == Device::Kind::cpu ? "fft" : "fbfft";
  const std::string config = R"(
version: 1
device: )" + to_string(GetParam()) +
                             R"(
model:
  input: [1, 12, 12]
  layers:
    - conv2d: {filters: 5, kernel: 5, pad: 2, engine: gemm}
    - relu
    - conv2d: {filters: 6, kernel: 7, pad: 3}
    - conv2d: {filters: 6, kernel: 5}
    - linear: {outputs: 4}
convolution: {cache: off, engine: )" +
                             engine +
                             R"(}
data:
  train: {format: synthetic, images: 40, classes: 4}
train: {epochs: 2, batch_size: 20}
)";
  std::vector<std::vector<float>> first;
  for (int run = 0; run < 3; ++run) {
    Trainer trainer(load_experiment_text(config, "named.yaml"), {});
    std::atomic<bool> stop = false;
    trainer.run({}, stop);
    if (run == 0) first = weights(trainer);
    EXPECT_EQ(weights(trainer), first);
    for (const TunedConvolution* convolution : trainer.model().net->convolutions()) {
      if (!convolution->engine().empty()) continue;
      const ConvProblem problem = convolution->problem(20);
      for (const ConvPass pass : {ConvPass::backward_input, ConvPass::backward_weight})
        EXPECT_EQ(full_name(*convolution->tuner().find(problem, pass)->plan),
                  full_name(*first_plan(convolution->tuner().engine(engine), problem, pass)));
    }
  }
}

// Frozen parameters stay bitwise identical, including batch norm's running averages, and the others are trained.
TEST_P(EveryDevice, TrainerKeepsFrozenLayers) {
  Trainer trainer(small_experiment({{"train.freeze", "[conv1, bn1]", "--set"},
                                    {"train.clip_norm", "1", "--set"},
                                    {"device", to_string(GetParam()), "--device"}}),
                  {});
  const std::vector<std::vector<float>> before = weights(trainer);
  std::atomic<bool> stop = false;
  trainer.run({}, stop);
  const std::vector<std::vector<float>> after = weights(trainer);
  const std::vector<Parameter*> parameters = trainer.model().net->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_EQ(before[i] == after[i], !parameters[i]->name.starts_with("fc1")) << parameters[i]->name;
}

// 90 images in batches of 20: an epoch's last update uses the 10 that are left, alone or after 20 others.
TEST_P(EveryDevice, TrainerAccumulationEqualsLargerBatch) {
  const std::string layers =
      "[conv2d: {filters: 4, kernel: 3}, residual: {layers: [conv2d: {filters: 4, kernel: 3, pad: 1}, relu]}, "
      "linear: {outputs: 4}]";
  for (const std::int64_t together : {2, 3}) {
    const auto trained = [&](std::int64_t batch, std::int64_t accumulate) {
      Trainer trainer(small_experiment({{"model.layers", layers, "--set"},
                                        {"device", to_string(GetParam()), "--device"},
                                        {"train.clip_norm", "0.5", "--set"},
                                        {"train.batch_size", std::to_string(batch), "--set"},
                                        {"train.accumulate", std::to_string(accumulate), "--set"}}),
                      {});
      Losses losses;
      std::atomic<bool> stop = false;
      trainer.run({&losses}, stop);
      return std::tuple(weights(trainer), losses.steps, trainer.state().step);
    };
    const auto [expected, expected_losses, expected_steps] = trained(20 * together, 1);
    const auto [actual, losses, steps] = trained(20, together);
    EXPECT_EQ(steps, expected_steps);
    ASSERT_EQ(losses.size(), expected_losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected_losses[i], 1e-5) << "step " << i;
    for (std::size_t i = 0; i < actual.size(); ++i)
      for (std::size_t k = 0; k < actual[i].size(); ++k)
        ASSERT_NEAR(actual[i][k], expected[i][k], 2e-6) << "tensor " << i << ", element " << k;
  }
}

// Five batches per epoch, two per step.
TEST(Trainer, CountsStepsOfAccumulatedBatches) {
  struct Counts : TrainObserver {
    std::vector<std::int64_t> steps, steps_of_epoch;
    bool wants_step(std::int64_t) override { return true; }
    void on_step(const StepReport& report) override {
      steps.push_back(report.step_of_epoch);
      EXPECT_EQ(report.steps_of_epoch, 3);
      EXPECT_EQ(report.batches, 5);
    }
  } counts;
  Trainer trainer(small_experiment({{"train.accumulate", "2", "--set"}, {"train.epochs", "2", "--epochs"}}), {});
  std::atomic<bool> stop = false;
  trainer.run({&counts}, stop);
  EXPECT_EQ(counts.steps, (std::vector<std::int64_t>{1, 2, 3, 1, 2, 3}));
}

TEST(Trainer, LoadsWeightsThatFit) {
  const std::string folder = new_folder("fine_tuning");
  std::atomic<bool> stop = false;
  Trainer first(small_experiment({{"train.epochs", "1", "--epochs"}}), in_folder(folder));
  first.run({}, stop);
  Trainer::Options options;
  options.weights = folder + "/best.safetensors";
  const Trainer second(small_experiment({{"model.layers.fc1.outputs", "6", "--set"}}), options);
  EXPECT_EQ(first.taken_weights(), nullptr);
  ASSERT_NE(second.taken_weights(), nullptr);
  EXPECT_EQ(second.taken_weights()->taken(), 2u);
  EXPECT_EQ(second.taken_weights()->layers.at(2).misfits,
            "'fc1.weight' is 4x36 in the file, 6x36 in the model, 'fc1.bias' is 4 in the file, 6 in the model");
  const auto values = [](const Trainer& trainer, std::size_t i) {
    Context reading(parse_device("auto"));  // where the trainers ran
    return trainer.model().net->parameters()[i]->variable.value().to_vector(*reading.stream);
  };
  EXPECT_EQ(values(second, 0), values(first, 0));
}

TEST(Trainer, StopsDuringEngineBenchmark) {
  const std::string folder = new_folder("measuring");
  const std::vector<Override> overrides{{"deterministic", "false", "--set"},
                                        {"convolution.cache", "off", "--set"},
                                        {"convolution.engine", "measured", "--set"}};
  std::atomic<bool> stop = false;
  int asked = 0;
  {
    ExperimentOptions stopping;
    stopping.measuring = std::make_shared<Measuring>(nullptr, [&] { return stop = ++asked > 2; });
    Trainer trainer(small_experiment(overrides, stopping), in_folder(folder));
    EXPECT_EQ(trainer.run({}, stop), Trainer::End::interrupted);
    EXPECT_EQ(trainer.state().step, 0);
    EXPECT_EQ(asked, 3) << "at once";
  }
  stop = false;
  Trainer resumed(small_experiment(overrides), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_EQ(resumed.run({}, stop), Trainer::End::finished);
}

// Requests the stop after an epoch's last step, before the validation.
struct StopBeforeValidation : TrainObserver {
  std::atomic<bool>& stop;
  std::int64_t last_step;
  StopBeforeValidation(std::atomic<bool>& flag, std::int64_t step) : stop(flag), last_step(step) {}
  bool wants_step(std::int64_t step) override { return step == last_step; }
  void on_step(const StepReport&) override { stop = true; }
};

TEST(Trainer, ResumesInterruptedValidation) {
  std::atomic<bool> stop = false;
  const std::string folder = new_folder("validation");
  Losses losses;
  {
    StopBeforeValidation stopper(stop, 4 * 5);
    Trainer first(small_experiment(), in_folder(folder));
    EXPECT_EQ(first.run({&losses, &stopper}, stop), Trainer::End::interrupted);
    EXPECT_EQ(first.state().epoch, 3);
    EXPECT_EQ(losses.epochs.size(), 3u);
  }
  stop = false;
  Trainer second(small_experiment(), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_EQ(second.run({&losses}, stop), Trainer::End::finished);
  EXPECT_EQ(losses.epochs.size(), 4u);
  EXPECT_EQ(losses.steps.size(), 20u);
  EXPECT_EQ(second.last_validation()->images, 40);
}

struct Order : TrainObserver {
  std::string reported;
  bool wants_step(std::int64_t) override { return false; }
  void on_epoch(const EpochReport&) override { reported += "epoch "; }
  void on_checkpoint(const std::string&) override { reported += "checkpoint "; }
};

// A kill between the two must leave one line too many, which a resumed run drops, and not one too few.
TEST(Trainer, ReportsEpochBeforeSaving) {
  Order order;
  std::atomic<bool> stop = false;
  Trainer(small_experiment({{"train.epochs", "2", "--epochs"},
                            {"data", "{train: {format: synthetic, images: 90, classes: 4}}", "--set"}}),
          in_folder(new_folder("order")))
      .run({&order}, stop);
  EXPECT_EQ(order.reported, "epoch checkpoint epoch checkpoint ");
}

// Saved once more at the end, with the last validation's result.
TEST(Trainer, SavesAnEpochBeforeItsValidation) {
  Order order;
  std::atomic<bool> stop = false;
  Trainer(small_experiment({{"train.epochs", "2", "--epochs"}}), in_folder(new_folder("order"))).run({&order}, stop);
  EXPECT_EQ(order.reported, "checkpoint epoch checkpoint epoch checkpoint ");
}

TEST_P(EveryDevice, TrainerCapturesWithoutMessage) {
  struct Listener : TrainObserver {
    std::string reported;
    bool wants_step(std::int64_t) override { return false; }
    void on_not_captured(const std::string& why) override { reported += why; }
  } listener;
  std::atomic<bool> stop = false;
  Trainer(small_experiment({{"device", to_string(GetParam()), "--device"}}), {}).run({&listener}, stop);
  EXPECT_EQ(listener.reported, "");  // a GPU captures steps, and a CPU reports nothing
}

TEST(Trainer, DoesNotDependOnWorkerCount) {
  std::atomic<bool> stop = false;
  Trainer none(small_experiment({{"data.workers", "0", "--workers"}}), {}),
      three(small_experiment({{"data.workers", "3", "--workers"}}), {});
  none.run({}, stop);
  three.run({}, stop);
  EXPECT_EQ(weights(none), weights(three));
}

TEST_P(EveryDevice, TrainerNamesLayerOfNonFiniteLoss) {
  // Only the engine gemm keeps such inputs separate: a spectrum mixes all elements of a plane.
  Trainer trainer(small_experiment({{"data.normalize", "{mean: 0, std: 1e-38}", "--set"},
                                    {"convolution.engine", "gemm", "--engine"},
                                    {"device", to_string(GetParam()), "--device"}}),
                  {});
  // On a GPU the loss is checked periodically.
  const std::string when = GetParam().kind == Device::Kind::cpu ? "epoch 1, step 1 " : "epoch 1, at or before step ";
  const auto start = weights(trainer);
  std::atomic<bool> stop = false;
  try {
    trainer.run({}, stop);
    FAIL() << "inputs of 1e38 went well";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
    EXPECT_NE(std::string(error.what()).find(when), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("first bad value: output of 'bn1'"), std::string::npos) << error.what();
  }
  EXPECT_EQ(weights(trainer)[0], start[0]);  // nothing was updated with it
}

// Only bright pixels overflow here: the message is about them, and not about the learning rate.
TEST_P(EveryDevice, TrainerNamesNonFiniteImage) {
  Trainer trainer(small_experiment({{"data.normalize", "{mean: 0, std: 1.6e-39}", "--set"},
                                    {"convolution.engine", "gemm", "--engine"},
                                    {"device", to_string(GetParam()), "--device"}}),
                  {});
  std::atomic<bool> stop = false;
  try {
    trainer.run({}, stop);
    FAIL() << "an infinite pixel went well";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
    const std::string message = error.what();
    EXPECT_NE(message.find("synthetic image "), std::string::npos) << message;
    EXPECT_NE(message.find(": the value at channel 0, row "), std::string::npos) << message;
    EXPECT_NE(message.find(" is inf.\n  Not the learning rate: see 'normalize'"), std::string::npos) << message;
  }
}

// Makes weights non-finite for one step and restores them before the loss on a GPU is checked.
struct SpoilOneStep : TrainObserver {
  Trainer& trainer;
  Tensor weights, whole;
  explicit SpoilOneStep(Trainer& of) : trainer(of), weights(of.model().net->parameters()[0]->variable.value()) {}
  bool wants_step(std::int64_t step) override {
    Stream& stream = *trainer.context().stream;
    if (step == 1) {
      whole = copy_of(stream, weights);
      stream.fill(weights.write(), weights.size(), std::numeric_limits<float>::quiet_NaN());
    } else if (step == 2) {
      stream.copy(weights.write(), whole.read(), whole.bytes());
    }
    return false;
  }
};

TEST_P(EveryDevice, TrainerBlamesLayerOnlyForItsInputs) {
  Trainer trainer(
      small_experiment({{"convolution.engine", "gemm", "--engine"}, {"device", to_string(GetParam()), "--device"}}),
      {});
  SpoilOneStep spoil(trainer);
  std::atomic<bool> stop = false;
  try {
    trainer.run({&spoil}, stop);
    FAIL() << "a step with weights that are no numbers went well";
  } catch (const Error& error) {
    const std::string what = GetParam().kind == Device::Kind::cpu
                                 ? "step 2 (learning rate 0.00416); every layer's output is finite: the labels or the"
                                 : "the images of step 5 leave every layer's output finite: those of an earlier step, ";
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
  }
}

// Records the order of step and epoch reports, and how often the host had waited for the device at each of them.
struct WaitsAtEachStep : TrainObserver {
  Trainer& trainer;
  std::vector<std::int64_t> steps, waits;
  explicit WaitsAtEachStep(Trainer& of) : trainer(of) {}
  bool wants_step(std::int64_t) override { return true; }
  void on_step(const StepReport& report) override {
    steps.push_back(report.step);
    waits.push_back(trainer.context().stream->synchronizations());
  }
  void on_epoch(const EpochReport& report) override { EXPECT_EQ(static_cast<std::size_t>(report.step), steps.size()); }
};

TEST_P(EveryDevice, TrainerReportsLossWithoutStall) {
  Trainer trainer(
      small_experiment({{"device", to_string(GetParam()), "--device"}, {"data.train.images", "100", "--set"}}), {});
  WaitsAtEachStep observer(trainer);
  std::atomic<bool> stop = false;
  trainer.run({&observer}, stop);
  ASSERT_EQ(observer.steps.size(), 4u * 5);
  for (std::size_t i = 0; i < observer.steps.size(); ++i)
    EXPECT_EQ(observer.steps[i], static_cast<std::int64_t>(i + 1));
  // Within the last epoch, whose last step is reported after its end.
  EXPECT_EQ(observer.waits[15], observer.waits[18]);
}

TEST(Trainer, OverfitsOneBatch) {
  Trainer::Options options;
  options.overfit_batch = true;
  Trainer trainer(small_experiment({{"train.epochs", "20", "--epochs"}, {"model.layers.4.dropout.rate", "0", "--set"}}),
                  options);
  Losses losses;
  std::atomic<bool> stop = false;
  trainer.run({&losses}, stop);
  EXPECT_LT(losses.steps.back(), 0.2 * losses.steps.front());
  EXPECT_LT(losses.top1.front(), 0.8);
  EXPECT_EQ(losses.top1.back(), 1);
}

TEST(Trainer, LimitsBatches) {
  Trainer::Options options;
  options.limit_batches = 2;
  Trainer trainer(small_experiment(), options);
  Losses losses;
  std::atomic<bool> stop = false;
  trainer.run({&losses}, stop);
  EXPECT_EQ(losses.steps.size(), 4u * 2);
}

TEST(Trainer, KeepsRequestedNumberOfCheckpoints) {
  const std::string folder = new_folder("keep");
  Trainer trainer(small_experiment({{"train.keep", "2", "--set"}}), in_folder(folder));
  std::atomic<bool> stop = false;
  trainer.run({}, stop);
  EXPECT_EQ(CheckpointStore(folder, 2).list().size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(folder + "/best.safetensors"));
}

TEST(Trainer, RefusesMoreClassesThanOutputs) {
  try {
    Trainer trainer(small_experiment({{"data.train.classes", "7", "--set"}}), {});
    FAIL() << "7 classes went into 4 outputs";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(std::string(error.what()).find("7 classes"), std::string::npos) << error.what();
  }
}

TEST(TrainStep, ClipsGradient) {
  // With a limit close to zero the weights hardly move.
  Trainer free(small_experiment({{"train.epochs", "1", "--epochs"}}), {});
  Trainer clipped(small_experiment({{"train.epochs", "1", "--epochs"},
                                    {"train.clip_norm", "1e-9", "--set"},
                                    {"train.optimizer", "{sgd: {momentum: 0}}", "--set"}}),
                  {});
  const auto start = weights(clipped);
  std::atomic<bool> stop = false;
  free.run({}, stop);
  clipped.run({}, stop);
  EXPECT_NEAR(weights(clipped)[0][0], start[0][0], 1e-7);
  EXPECT_GT(std::abs(weights(free)[0][0] - start[0][0]), 1e-5);
}

}  // namespace
}  // namespace twiddle
