#include "models/training/weight_average.h"
#include "data/loader.h"
#include "models/checkpoints/weights.h"
#include "models/evaluation/evaluate.h"

#include <cmath>

#include "models/checkpoints/checkpoint.h"
#include "models/training/open_data.h"
#include "tests/models/small_run.h"
#include "tests/models/small_training.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

// A network of two layers and the average of its weights.
struct AveragedRun {
  SmallRun run;
  Stream& stream = *run.ctx.stream;
  WeightAverage average{stream, run.net, 0.75};

  void update(float weight) {
    run.set(weight);
    average.update(stream, {Tensor::filled(stream, {1}, static_cast<float>(average.next_share())), {}});
    average.count();
  }
};

std::vector<Override> with_average(const Device& device = {}) {
  return {{"train.ema", "{decay: 0.9}", "--set"}, {"device", to_string(device), "--device"}};
}

}  // namespace

// 2; 2 + 0.25 (6 - 2) = 3; 3 + 0.25 (-1 - 3) = 2.
TEST(WeightAverage, StartsWithWeightsAndFollowsThem) {
  AveragedRun averaged;
  {
    averaged.run.set(9);
    const AveragedWeights nothing_yet(&averaged.average);
    EXPECT_TRUE(averaged.run.all_are(9));
  }
  for (const auto& [weight, expected] : std::vector<std::pair<float, float>>{{2, 2}, {6, 3}, {-1, 2}}) {
    averaged.update(weight);
    const auto first = [&] { return averaged.run.net.parameters()[0]->variable.value().to_vector(averaged.stream)[0]; };
    {
      const AveragedWeights in_place(&averaged.average);
      EXPECT_EQ(first(), expected);
    }
    EXPECT_EQ(first(), weight);
  }
}

// min(0.75, (1 + n) / (10 + n)) for updates 2, 3, ...
TEST(WeightAverage, WarmsUpItsDecay) {
  SmallRun run;
  WeightAverage average(*run.ctx.stream, run.net, 0.75, true);
  EXPECT_DOUBLE_EQ(average.next_share(), 1);
  average.count();
  EXPECT_DOUBLE_EQ(average.next_share(), 1 - 3.0 / 12);
  average.count();
  EXPECT_DOUBLE_EQ(average.next_share(), 1 - 4.0 / 13);
  for (int i = 0; i < 100; ++i) average.count();
  EXPECT_DOUBLE_EQ(average.next_share(), 0.25);
}

TEST(WeightAverage, IsSavedInCheckpoint) {
  const std::string folder = fresh_path("average_checkpoint");
  std::filesystem::create_directories(folder);
  AveragedRun saved, restored;
  saved.update(2);
  saved.update(6);
  write_checkpoint(folder, saved.run.ctx, saved.run.net, saved.run.optimizer, {}, {}, &saved.average);
  const auto first_of = [](const SmallRun& run) {
    return run.net.parameters()[0]->variable.value().to_vector(*run.ctx.stream)[0];
  };
  SmallRun evaluated, without;
  load_weights(folder + "/model.safetensors", evaluated.ctx, evaluated.net);
  EXPECT_EQ(first_of(evaluated), 3);
  restore_checkpoint(folder, without.ctx, without.net, without.optimizer);
  EXPECT_EQ(first_of(without), 6) << "a run without averages continues with the weights";
  restore_checkpoint(folder, restored.run.ctx, restored.run.net, restored.run.optimizer, &restored.average);
  EXPECT_EQ(first_of(restored.run), 6);
  const AveragedWeights in_place(&restored.average);
  EXPECT_EQ(first_of(restored.run), 3);
}

// Computed by a plain loop over the steps of a run: all tensors, including batch norm's running statistics.
TEST_P(EveryDevice, WeightAverageIncludesEveryStep) {
  struct ByHand : TrainObserver {
    Trainer* trainer = nullptr;
    std::vector<std::vector<double>> average;
    bool wants_step(std::int64_t step) override {
      const std::vector<std::vector<float>> now = weights(*trainer);
      average.resize(now.size());
      for (std::size_t i = 0; i < now.size(); ++i) {
        average[i].resize(now[i].size());
        for (std::size_t k = 0; k < now[i].size(); ++k)
          average[i][k] = step == 1 ? now[i][k] : 0.9 * average[i][k] + 0.1 * now[i][k];
      }
      return false;
    }
  } by_hand;
  const std::string folder = new_folder("average_by_hand_" + to_string(GetParam()));
  Trainer trainer(small_experiment(with_average(GetParam())), in_folder(folder));
  by_hand.trainer = &trainer;
  std::atomic<bool> stop = false;
  trainer.run({&by_hand}, stop);
  const SafeTensors saved = read_safetensors(trainer.last_checkpoint() + "/model.safetensors");
  const std::vector<Parameter*> parameters = trainer.model().net->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto* const values = reinterpret_cast<const float*>(saved.arrays.at(parameters[i]->name).bytes.data());
    for (std::size_t k = 0; k < by_hand.average[i].size(); ++k)
      ASSERT_NEAR(values[k], by_hand.average[i][k], 2e-6 * (1 + std::abs(values[k]))) << parameters[i]->name;
  }
}

namespace {

void expect_validated_and_saved(const Device& device, const std::string& precision) {
  const std::string folder = new_folder("average_validated_" + precision + "_" + to_string(device));
  std::vector<Override> overrides = with_average(device);
  overrides.push_back({"train.epochs", "1", "--epochs"});
  overrides.push_back({"precision", precision, "--precision"});
  Trainer trainer(small_experiment(overrides), in_folder(folder));
  std::atomic<bool> stop = false;
  trainer.run({}, stop);
  const double validated = trainer.last_validation()->scores.loss;

  Experiment experiment = small_experiment(overrides);
  Context ctx(device, 3);
  experiment.model.net->initialize(ctx);
  const OpenData data = open_data(experiment);
  Loader loader(*data.val, *data.val_augment, {.batch_size = 20});
  load_weights(folder + "/best.safetensors", ctx, *experiment.model.net);
  EXPECT_EQ(evaluate(ctx, *experiment.model.net, *experiment.loss, loader).scores.loss, validated);
}

}  // namespace

TEST_P(EveryDevice, WeightAverageIsValidatedAndSaved) {
  for (const char* precision : {"fp32", "bf16"}) expect_validated_and_saved(GetParam(), precision);
}

namespace {

void expect_exact_resume(const std::string& ema) {
  const std::vector<Override> overrides{{"train.ema", ema, "--set"}};
  std::atomic<bool> stop = false;
  const std::string whole = new_folder("average_whole");
  Trainer straight(small_experiment(overrides), in_folder(whole));
  straight.run({}, stop);
  for (const std::int64_t first_steps : {3, 10}) {
    const std::string folder = new_folder("average_resumed");
    {
      StopAfter stopper(first_steps, stop);
      Trainer first(small_experiment(overrides), in_folder(folder));
      first.run({&stopper}, stop);
    }
    stop = false;
    Trainer second(small_experiment(overrides), in_folder(folder, newest_checkpoint(folder)));
    second.run({}, stop);
    EXPECT_EQ(weights(second), weights(straight));
    for (const char* file : {"/model.safetensors", "/state.safetensors"}) {
      const SafeTensors a = read_safetensors(straight.last_checkpoint() + file),
                        b = read_safetensors(second.last_checkpoint() + file);
      for (const auto& [name, array] : a.arrays) EXPECT_TRUE(array.bytes == b.arrays.at(name).bytes) << name;
    }
  }
}

}  // namespace

TEST(WeightAverage, ResumesExactly) {
  expect_exact_resume("{decay: 0.9}");
}

TEST(WeightAverage, ResumesExactlyDuringWarmUp) {
  expect_exact_resume("{decay: 0.99, warmup: true}");
}

}  // namespace twiddle
