#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "framework/optimizer.h"
#include "models/builder.h"
#include "models/checkpoint.h"

namespace twiddle {

// Forward, loss, backward, update: one step. Returns what a log line may want; the loss stays on the device.
struct StepResult {
  Tensor loss;    // one element
  Tensor logits;  // [batch, classes]
};
StepResult train_step(Context& ctx, const Sequential& net, const Batch& batch, Optimizer& optimizer,
                      std::vector<Parameter*>& parameters, double rate, double clip_norm, float label_smoothing);

struct EvalResult {
  double loss = 0, top1 = 0, top5 = 0;  // mean nats; shares of 1
  std::int64_t images = 0;
  std::vector<std::int64_t> confusion;  // [actual * classes + predicted]
  struct Wrong {
    std::int64_t index = 0, actual = 0, predicted = 0;
    float probability = 0;  // of the prediction
  };
  std::vector<Wrong> wrong;  // the most confident mistakes first, a few
};
EvalResult evaluate(Context& ctx, const Sequential& net, Loader& loader, std::int64_t limit_batches = 0,
                    const std::function<bool()>& cancelled = {});

struct StepReport {
  std::int64_t epoch = 0, batch = 0, batches = 0, step = 0;  // counted from 1
  double loss = 0, rate = 0, images_per_second = 0, wait_share = 0, eta_seconds = 0;
};
struct EpochReport {
  std::int64_t epoch = 0, epochs = 0, step = 0;
  double train_loss = 0, train_top1 = 0, images_per_second = 0, wait_share = 0, seconds = 0, rate = 0;
  bool has_validation = false, best = false;
  double val_loss = 0, val_top1 = 0, val_top5 = 0;
};

// Who watches a run: the terminal, the metrics files, a test.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual bool wants_step(std::int64_t step) = 0;  // true: the loss is read from the device and on_step called
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}
  virtual void on_checkpoint(const std::string& /*folder*/) {}
};

// A run from YAML to a trained file: owns context, model, data, optimizer; saves and resumes exactly.
class Trainer {
 public:
  struct Options {
    std::string run_folder;          // empty: nothing is written
    std::string resume;              // a checkpoint folder; empty: start anew
    std::string weights;             // weights to start from; empty: by the initialisers
    std::int64_t limit_batches = 0;  // per epoch; 0: all
    bool overfit_batch = false;      // the first batch again and again
  };
  enum class End { finished, interrupted };

  Trainer(const Config& config, Options options);
  ~Trainer();

  End run(const std::vector<TrainObserver*>& observers,
          const std::atomic<bool>& stop);  // stop: finish the batch, save, return
  EvalResult validate();
  bool has_validation() const;

  Context& context();
  const Model& model() const;
  const RunState& state() const;
  const Dataset& train_data() const;
  const Dataset* val_data() const;
  const Augment& val_augment() const;
  std::int64_t steps_per_epoch() const;
  std::string last_checkpoint() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace twiddle
