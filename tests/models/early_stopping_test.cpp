#include "models/training/early_stopping.h"

#include <cmath>

#include "tests/models/config_text.h"
#include "tests/models/small_training.h"

namespace twiddle {

namespace {

// Returns the epoch after which the run stops, for scores of epochs 1, 2, ...; 0: it does not stop.
std::int64_t stops_after(const std::string& metric, double min_delta, const std::vector<double>& scores) {
  Config::Train train;
  train.watch = metric, train.patience = 2, train.min_delta = min_delta;
  const EarlyStopping early_stopping(every_metric(), train);
  RunState state;
  early_stopping.resume(state);
  for (const double score : scores) {
    Scores measured;
    measured.*early_stopping.metric().score = score;
    early_stopping.take(++state.epoch, measured, state);
    if (early_stopping.stops(state)) return state.epoch;
  }
  return 0;
}

// Counts the epochs and records those that are the best so far.
struct Epochs : TrainObserver {
  std::vector<std::int64_t> best;
  std::int64_t count = 0;
  void on_epoch(const EpochReport& report) override {
    ++count;
    if (report.best) best.push_back(report.epoch);
  }
  bool wants_step(std::int64_t) override { return false; }
};

// A rate of 0 leaves the score unchanged, so that the first epoch stays the best.
std::vector<Override> without_progress() {
  return {{"train.early_stop", "{patience: 2}", "--set"},
          {"train.watch", "loss", "--set"},
          {"train.learning_rate", "0", "--set"},
          {"model.layers.bn1.momentum", "0", "--set"},
          {"train.epochs", "9", "--epochs"}};
}

}  // namespace

TEST(EarlyStopping, StopsWithoutImprovement) {
  EXPECT_EQ(stops_after("top1", 0, {0.1, 0.2, 0.2, 0.15, 0.3}), 4);
  EXPECT_EQ(stops_after("top1", 0, {0.1, 0.1, 0.2, 0.2, 0.3}), 0);
  EXPECT_EQ(stops_after("loss", 0, {2, 1, 1.5, 1.2}), 4);
  EXPECT_EQ(stops_after("top1", 0, {NAN, 0.1, NAN, 0.2}), 0) << "before the first score there is nothing to better";
}

TEST(EarlyStopping, DiscardsBestOfAnotherValidationSet) {
  const EarlyStopping early_stopping(every_metric(), {});
  RunState state;
  state.best_epoch = state.improved_epoch = 3;
  EXPECT_EQ(early_stopping.resume(state, "12 images, a1b2"), "");
  EXPECT_EQ(early_stopping.resume(state), "");
  EXPECT_EQ(state.best_epoch, 3);
  EXPECT_NE(early_stopping.resume(state, "12 images, c3d4"), "");
  EXPECT_EQ(state.best_epoch, 0);
  EXPECT_EQ(state.improved_epoch, 0);
}

// Each epoch improves on the previous one by less than min_delta.
TEST(EarlyStopping, IgnoresImprovementBelowMinDelta) {
  EXPECT_EQ(stops_after("top1", 0.1, {0.1, 0.15, 0.19, 0.5}), 3);
  EXPECT_EQ(stops_after("loss", 0.1, {1, 0.95, 0.85, 0.8, 0.7}), 0);
}

TEST(EarlyStopping, BestEpochIgnoresMinDelta) {
  Config::Train train;
  train.min_delta = 0.5;
  const EarlyStopping by_top1(every_metric(), train);
  EXPECT_EQ(std::string(by_top1.metric().name), "top1") << "auto";
  RunState state;
  by_top1.resume(state);
  Scores scores;
  scores.top1 = 0.1;
  EXPECT_TRUE(by_top1.take(1, scores, state));
  scores.top1 = 0.2;
  EXPECT_TRUE(by_top1.take(2, scores, state));
  EXPECT_FALSE(by_top1.take(3, scores, state));
  EXPECT_EQ(state.best_epoch, 2);
  EXPECT_EQ(state.improved_epoch, 1);
  train.watch = "loss";
  const EarlyStopping by_loss(every_metric(), train);
  by_loss.resume(state);
  scores.loss = 3;
  EXPECT_TRUE(by_loss.take(4, scores, state)) << "a fraction of images is not a loss";
}

TEST(EarlyStopping, StopsRunAndItsResume) {
  const std::string folder = new_folder("early_stop");
  std::atomic<bool> stop = false;
  Epochs epochs;
  {
    StopAfter stopper(12, stop);  // in the third epoch
    Trainer first(small_experiment(without_progress()), in_folder(folder));
    EXPECT_EQ(first.run({&epochs, &stopper}, stop), Trainer::End::interrupted);
    EXPECT_FALSE(first.stopped_early());
  }
  stop = false;
  Trainer second(small_experiment(without_progress()), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_EQ(second.run({&epochs}, stop), Trainer::End::finished);
  EXPECT_TRUE(second.stopped_early());
  EXPECT_EQ(epochs.count, 3);
  EXPECT_EQ(epochs.best, std::vector<std::int64_t>{1});

  Trainer third(small_experiment(without_progress()), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_EQ(third.run({&epochs}, stop), Trainer::End::finished);
  EXPECT_EQ(epochs.count, 3) << "it is over";
  std::vector<Override> patient = without_progress();
  patient[0].value = "{patience: 4}";
  Trainer fourth(small_experiment(patient), in_folder(folder, newest_checkpoint(folder)));
  fourth.run({&epochs}, stop);
  EXPECT_EQ(fourth.state().epoch, 5);
}

TEST(EarlyStopping, CanBeRemovedByOverride) {
  const std::string text = smallest_config +
                           "train: {early_stop: {patience: 3}, ema: {decay: 0.9}, freeze: fc1.bias, "
                           "learning_rates: {fc1: 2}}\n";
  EXPECT_EQ(config_of(text).train.patience, 3);
  const Config::Train train = config_of(text, {{"train.early_stop", "null", "--set"},
                                               {"train.ema", "null", "--set"},
                                               {"train.freeze", "null", "--set"},
                                               {"train.learning_rates", "null", "--set"}})
                                  .train;
  EXPECT_EQ(train.patience, 0);
  EXPECT_EQ(train.ema_decay, 0);
  EXPECT_TRUE(train.freeze.empty() && train.learning_rates.empty());
}

TEST(EarlyStopping, ReportsInvalidConfig) {
  const std::string data = "data: {train: {format: synthetic}, val: {format: synthetic}}\n";
  EXPECT_TRUE(holds(complaint_about(smallest_config + data + "train: {watch: tpo1}\n"), "'tpo1'"));
  EXPECT_TRUE(holds(complaint_about(smallest_config + data + "train: {watch: psnr}\n"), "auto, loss, top1, top5"));
  EXPECT_TRUE(holds(complaint_about(smallest_config + data + "train: {early_stop: {}}\n"), "missing key 'patience'"));
  EXPECT_TRUE(holds(complaint_about(smallest_config + "data: {train: {format: synthetic}}\n"
                                                      "train: {early_stop: {patience: 3}}\n"),
                    "'early_stop' needs a validation set"));
}

}  // namespace twiddle
