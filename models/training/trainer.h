#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "data/target.h"
#include "models/evaluation/metric.h"
#include "models/training/data_wait.h"

namespace twiddle {

class Augment;
class Communicator;
class Dataset;
class Loss;
class Optimizer;
struct Config;
struct Context;
struct EvalResult;
struct Experiment;
struct MemoryPlan;
struct Model;
struct RunState;
struct TakenWeights;

struct StepReport {
  // Counted from 1. A step is an update, of `accumulate` batches.
  std::int64_t epoch = 0, batch = 0, batches = 0, step = 0, step_of_epoch = 0, steps_of_epoch = 0;
  double loss = 0, rate = 0, images_per_second = 0, eta_seconds = 0;
  DataWait wait;
  std::int64_t skipped = 0;  // different images that could not be read so far
  double loss_scale = 0;     // of the next step; 0: the loss is not scaled
  std::int64_t skipped_steps = 0;
};
struct EpochReport {
  std::int64_t epoch = 0, epochs = 0, step = 0;
  double train_loss = 0, images_per_second = 0, seconds = 0, rate = 0;
  DataWait wait;
  double train_top1 = std::numeric_limits<double>::quiet_NaN();  // share of 1, of images as trained on; NaN: not known
  bool has_validation = false, best = false;
  Scores val;
  std::int64_t skipped = 0;
  double loss_scale = 0;  // as in StepReport
  std::int64_t skipped_steps = 0;
};

// Receives the events of a run: the terminal, the metrics files, a test.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual bool wants_step(std::int64_t step) = 0;  // true: the loss is read from the device and on_step called
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}  // before the epoch's checkpoint: what it writes down, a resume can drop
  virtual void on_checkpoint(const std::string& /*folder*/) {}
  virtual void on_not_captured(const std::string& /*why*/) {}  // once: on this GPU, steps cannot be captured
};

// A run from YAML to a trained file: owns context, model, data, optimizer; saves and resumes exactly. Several ranks,
// each with a Trainer of the same experiment, train as one process would: they share the images of each batch and have
// equal weights after each step. If one rank ends its run, all ranks end after the same step.
class Trainer {
 public:
  struct Options {
    std::string run_folder;                    // empty: nothing is written; ranks other than 0 have none
    std::string resume;                        // a checkpoint folder; empty: start from the beginning
    std::string weights;                       // to start from, as far as they fit; empty: by the initialisers
    std::int64_t limit_batches = 0;            // per epoch; 0: all
    bool overfit_batch = false;                // the first batch again and again
    bool capture = true;                       // steps are captured where the device can: a CUDA graph
    std::shared_ptr<Communicator> ranks = {};  // null: this process trains alone
  };
  enum class End { finished, interrupted };

  Trainer(Experiment experiment, Options options);
  ~Trainer();

  End run(const std::vector<TrainObserver*>& observers,
          const std::atomic<bool>& stop);     // stop: finish the batch, or leave a validation, save, return
  const TakenWeights* taken_weights() const;  // of Options::weights; null: none were given
  bool has_validation() const;
  std::vector<Metric> metrics() const;  // of a validation
  const Metric& watched() const;        // the one that the best epoch is chosen by
  bool stopped_early() const;           // as no epoch got better any more
  TargetKind target() const;
  // At the end of the last epoch of this process; null: none yet.
  std::shared_ptr<const EvalResult> last_validation() const;

  const Config& config() const;
  Context& context();
  const Model& model() const;
  const Optimizer& optimizer() const;
  const Loss& loss() const;
  const RunState& state() const;
  const Dataset& train_data() const;
  const Dataset* val_data() const;
  const Augment& val_augment() const;
  Communicator& ranks() const;
  const MemoryPlan& memory_plan() const;  // of this rank
  std::int64_t images_here() const;       // of each full batch, on this rank
  std::int64_t batches_per_epoch() const;
  std::int64_t steps_per_epoch() const;  // updates
  std::string last_checkpoint() const;
  const std::vector<std::string>& warnings() const;   // of the data, as opened and as resumed
  std::int64_t skipped() const;                       // different images left out, of both sets
  std::vector<std::string> skipped_messages() const;  // of the first few of them

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace twiddle
