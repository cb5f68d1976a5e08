#include <gtest/gtest.h>

#include <filesystem>

#include "framework/error.h"
#include "models/checkpoints/checkpoint.h"
#include "models/training/trainer.h"
#include "tests/models/small_training.h"
#include "tests/support/forwarding_stream.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

// A device whose memory another program has filled: it computes, but every allocation fails.
class FullStream final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    throw OutOfMemory(join("out of memory: ", bytes, " bytes requested"));
  }
};

// Makes allocations fail after a number of steps.
struct FillMemory : TrainObserver {
  Trainer& trainer;
  std::int64_t steps;
  FillMemory(Trainer& of, std::int64_t count) : trainer(of), steps(count) {}
  bool wants_step(std::int64_t step) override {
    std::unique_ptr<Stream>& stream = trainer.context().stream;
    if (step == steps) stream = std::make_unique<FullStream>(std::move(stream));
    return false;
  }
};

Experiment five_steps(const std::vector<Override>& overrides = {}) {
  return load_experiment_text(R"(
version: 1
device: cpu
model:
  input: [1, 8, 8]
  layers:
    - conv2d: {filters: 4, kernel: 3}
    - dropout: {rate: 0.3}
    - linear: {outputs: 4}
convolution: {engine: gemm}
data:
  train: {format: synthetic, images: 100, classes: 4}
  workers: 0
train: {epochs: 3, batch_size: 20, optimizer: {sgd: {momentum: 0.9}}}
)",
                              "five.yaml", overrides);
}

}  // namespace

TEST(OutOfMemory, KeepsLastCheckpointIntact) {
  std::atomic<bool> stop = false;
  Trainer straight(five_steps(), {});
  straight.run({}, stop);

  const std::string folder = temp_path("out_of_memory");
  std::filesystem::remove_all(folder);
  Trainer::Options options;
  options.run_folder = folder;
  {
    Trainer trainer(five_steps(), options);
    FillMemory fill(trainer, 7);  // in the second epoch
    try {
      trainer.run({&fill}, stop);
      FAIL() << "trained without memory";
    } catch (const OutOfMemory& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::device);
      for (const char* part : {"layer 'conv1', forward: out of memory", " at a batch of 20 by plan", "--batch-size ",
                               "\n  last checkpoint: ", "step-00000005"})
        EXPECT_NE(message.find(part), std::string::npos) << part << " is not in\n" << message;
    }
  }

  options.resume = newest_checkpoint(folder);
  EXPECT_TRUE(options.resume.ends_with("step-00000005")) << options.resume;
  Trainer resumed(five_steps(), options);
  EXPECT_EQ(resumed.run({}, stop), Trainer::End::finished);
  EXPECT_EQ(weights(resumed), weights(straight));
}

TEST(OutOfMemory, SuggestsBatchBeforeFirstStep) {
  // The largest weight that a layer may have: 4 TiB.
  Experiment experiment =
      five_steps({{"model.input", "[1, 2048, 2048]", "--set"}, {"model.layers.fc1.outputs", "65536", "--set"}});
  try {
    Trainer trainer(std::move(experiment), {});
    FAIL() << "weights of 4 TiB";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("even a batch of 1 needs "), std::string::npos) << error.what();
  }
}

TEST(OutOfMemory, DoesNotHideDivergenceError) {
  std::atomic<bool> stop = false;
  Trainer trainer(five_steps({{"data.normalize", "{mean: 0, std: 1e-38}", "--set"}}), {});
  FillMemory fill(trainer, 1);
  try {
    trainer.run({&fill}, stop);
    FAIL() << "inputs of 1e38 went well";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged) << error.what();
    EXPECT_NE(std::string(error.what()).find("cannot find where it began: "), std::string::npos) << error.what();
  }
}

}  // namespace twiddle
