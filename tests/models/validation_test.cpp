#include <gtest/gtest.h>

#include <cmath>

#include "framework/error.h"
#include "models/checkpoints/checkpoint.h"
#include "tests/models/small_training.h"

namespace twiddle {
namespace {

// Makes batch norm's running averages NaN, which training updates and only a validation uses.
struct SpoilAverages : TrainObserver {
  explicit SpoilAverages(Trainer& spoiled) : trainer(spoiled) {}
  bool wants_step(std::int64_t) override { return true; }
  void on_step(const StepReport& /*report*/) override {
    Stream& stream = *trainer.context().stream;
    for (Parameter* parameter : trainer.model().net->parameters())
      if (parameter->name.ends_with("running_mean"))
        stream.fill(parameter->variable.value().write(), count_of(parameter->shape), NAN);
  }
  Trainer& trainer;
};

TEST(Validation, StopsIfOutputsAreNotFinite) {
  Trainer trainer(small_experiment(), in_folder(new_folder("not_finite")));
  SpoilAverages spoil(trainer);
  std::atomic<bool> stop = false;
  try {
    trainer.run({&spoil}, stop);
    FAIL() << "the run continued";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
    const std::string message = error.what();
    EXPECT_EQ(message.find("validation after epoch 1"), 0u) << message;
    EXPECT_NE(message.find(": the network's outputs for 40 of 40 images are nan or infinite"), std::string::npos)
        << message;
    EXPECT_NE(message.find(trainer.last_checkpoint()), std::string::npos) << message;
  }
  EXPECT_EQ(trainer.state().best_epoch, 0);
  EXPECT_EQ(trainer.last_validation(), nullptr);
}

struct Rates : TrainObserver {
  double of_step = -1;
  std::vector<std::pair<double, double>> at_ends;  // of the last step, and as reported of the epoch
  bool wants_step(std::int64_t) override { return true; }
  void on_step(const StepReport& report) override { of_step = report.rate; }
  void on_epoch(const EpochReport& report) override { at_ends.emplace_back(of_step, report.rate); }
};

TEST(EpochReport, HasRateOfItsLastStep) {
  Trainer trainer(small_experiment(), {});
  Rates rates;
  std::atomic<bool> stop = false;
  trainer.run({&rates}, stop);
  ASSERT_EQ(rates.at_ends.size(), 4u);
  for (const auto& [step, epoch] : rates.at_ends) EXPECT_EQ(step, epoch);
}

}  // namespace
}  // namespace twiddle
