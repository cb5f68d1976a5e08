// Two trainings in one process, each on a separate GPU.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "models/config/experiment.h"
#include "models/training/train_step.h"

namespace twiddle {
namespace {

constexpr int steps = 6;  // the last are replayed from a graph

struct GpuTraining {
  Experiment experiment;
  Context ctx;
  const Model& model = experiment.model;
  Optimizer& optimizer = *experiment.optimizer;
  TrainStep step;
  Batch batch;

  explicit GpuTraining(int index)
      : experiment(load_experiment_text("version: 1\ndeterministic: true\n"
                                        "device: cuda:" +
                                            std::to_string(index) +
                                            "\n"
                                            "model:\n"
                                            "  input: [3, 12, 12]\n"
                                            "  layers:\n"
                                            "    - conv2d: {filters: 16, kernel: 5, pad: 2}\n"
                                            "    - relu\n"
                                            "    - conv2d: {filters: 16, kernel: 3, stride: 2}\n"
                                            "    - batch_norm\n"
                                            "    - dropout\n"
                                            "    - linear: {outputs: 3}\n"
                                            "convolution: {cache: off}\n"
                                            "data: {train: {format: synthetic, images: 8, classes: 3}}\n"
                                            "train: {optimizer: {sgd: {momentum: 0.9}}, learning_rate: 0.1}\n",
                                        "two_gpus.yaml")),
        ctx(Device{Device::Kind::cuda, index}, 3),
        step(ctx, *model.net, *experiment.loss, optimizer, {}) {
    model.net->initialize(ctx);
    batch = {Tensor::filled(*ctx.stream, {8, 3, 12, 12}, 0.5f),
             Tensor::from(*ctx.stream, {8}, std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1}),
             {}};
  }
  void run() { step.run(batch, 0.01); }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const Parameter* parameter : model.net->parameters())
      for (const float value : parameter->variable.value().to_vector(*ctx.stream)) all.push_back(value);
    return all;
  }
};

class TwoTrainings : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() < 2) GTEST_SKIP() << "fewer than two GPUs";
  }
  // Both end with the same weights as when each runs alone.
  static void expect_as_alone(const std::function<void(GpuTraining&, GpuTraining&)>& run) {
    GpuTraining first(0), second(1);
    run(first, second);
    const std::vector<float> weights[] = {first.weights(), second.weights()};
    for (const int index : {0, 1}) {
      GpuTraining alone(index);
      for (int i = 0; i < steps; ++i) alone.run();
      EXPECT_TRUE(alone.step.captured()) << alone.step.why_not_captured();
      EXPECT_EQ(alone.weights(), weights[index]) << "cuda:" << index;
    }
  }
};

TEST_F(TwoTrainings, RunStepsInTurn) {
  expect_as_alone([](GpuTraining& first, GpuTraining& second) {
    for (int i = 0; i < steps; ++i) first.run(), second.run();
  });
}

TEST_F(TwoTrainings, RunInSeparateThreads) {
  expect_as_alone([](GpuTraining& first, GpuTraining& second) {
    const auto all_steps = [](GpuTraining& training) {
      for (int i = 0; i < steps; ++i) training.run();
    };
    std::thread other(all_steps, std::ref(second));
    all_steps(first);
    other.join();
  });
}

}  // namespace
}  // namespace twiddle
