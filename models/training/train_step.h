#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "framework/optimizers/gradient_scale.h"
#include "framework/ranks/communicator.h"
#include "framework/step_inputs.h"
#include "layers/sequential.h"
#include "models/loss.h"
#include "models/training/rank_means.h"
#include "models/training/sharded_optimizer.h"
#include "models/training/weight_average.h"

namespace twiddle {

struct StepOptions {
  double clip_norm = 0;                      // 0: gradients are not clipped
  std::optional<LossScale> loss_scale = {};  // none: 1, and no gradient is inspected before the update
  std::int64_t accumulate = 1;       // batches per update: its gradient is that of the mean over all their images
  WeightAverage* average = nullptr;  // follows the weights; null: none
  bool capture = true;  // where the device can, a batch whose memory comes again is captured and replayed from then on
  bool events = false;  // between the phases
  Communicator* ranks = nullptr;  // that share each batch and the update; null: one process
};

// Moments of a step: its start and the end of each phase.
struct StepEvents {
  std::shared_ptr<Event> start, forward, backward, update;
};

// Forward, loss, backward, update: one step of training, again and again. Where several batches make an update, each of
// them is a step without it, which may be captured, and the update comes after the last one. If ranks share each batch,
// each updates its shard of the weights, and all have the same weights, averages and sums after that.
class TrainStep {
 public:
  TrainStep(Context& ctx, const Sequential& net, const Loss& loss, Optimizer& optimizer, const StepOptions& options);

  // The loss, one element, stays on the device, and is that of the latest step alone: of the batches so far that go
  // into the same update. A loss that is not finite leaves weights and optimizer as they were, in this step and in all
  // that follow until sums() are set to numbers again. If the loss scale adapts, it leaves them so in this step alone.
  Tensor run(const Batch& batch, double rate);

  // Whether batches have run that wait for others to go into an update with; and the update by those alone, at the end
  // of an epoch. Its loss.
  bool waits_for_batches() const { return batches_ > 0; }
  Tensor update_now();

  // All-gathers the updated weights, which otherwise happens in the next step's forward pass. Call on all ranks before
  // reading weights between steps.
  void all_gather_weights();

  // The optimizer's state in the layout of a single process, for a checkpoint. Call on all ranks.
  std::vector<std::pair<std::string, Tensor>> optimizer_state();

  // For a run that ends: the parameter whose gradient the backward pass finds not to be finite first; empty: none.
  std::string first_bad_gradient(const Batch& batch);

  // Two elements, over the steps since they were 0: loss times images, and images whose label came first, where images
  // have one. The first is NaN from the first update on that found a gradient, or a new value, that is not finite and
  // no reason to skip the step. Losses of skipped steps that are not finite are left out.
  Tensor& sums();
  // Null if gradients are used as they are.
  GradientScale* gradient_scale() { return scale_ ? &*scale_ : nullptr; }
  bool scales_loss() const { return options_.loss_scale.has_value(); }
  const StepEvents& events() const { return events_; }  // of the latest step
  bool captured() const { return !captured_.empty(); }
  // Frees the memory of captured steps, for a validation. The next step is captured again.
  void drop_graphs();
  // Why steps cannot be captured; empty: they can.
  const std::string& why_not_captured() const { return why_not_captured_; }

 private:
  // A step that was captured on one batch, and reads that batch's memory at each replay.
  struct Captured {
    Batch batch;
    std::unique_ptr<Graph> graph;
    Tensor loss;
    StepEvents events;  // set again at each replay
  };

  void set_inputs(const Batch& batch, double rate);
  Tensor step(const Batch& batch);
  void update(Tensor loss);
  Variable loss_of(const Batch& batch, Tensor* sums);
  void add_to_means(const Tensor& loss);
  void add_own_sums();
  bool skips_steps() const { return options_.loss_scale && options_.loss_scale->adapts; }
  void end_update();

  void share_update();
  Variable loss_without_rows();
  Tensor part_of_rank(const Tensor& loss);
  void reduce_over_ranks(Tensor& loss);
  void agree_on_position();

  Tensor replay_or_step(const Batch& batch);
  Tensor replay(const Captured& captured);
  const Captured* captured_on(const Batch& batch) const;  // null: none
  bool is_time_to_capture(const Batch& batch);
  void try_to_capture(const Batch& batch);
  void capture(const Batch& batch);
  void give_up_capture(const std::string& why);
  void record_event(std::shared_ptr<Event>& event);

  Context& ctx_;
  const Sequential& net_;
  const Loss& loss_;
  Optimizer& optimizer_;
  StepOptions options_;
  std::vector<Parameter*> parameters_;
  std::vector<Parameter*> running_;  // batch norm's averages
  Tensor sums_;
  Tensor own_sums_;                     // as sums_, of this rank's rows since the last update, which adds them to sums_
  std::optional<GradientScale> scale_;  // none: gradients are used as they are
  StepInputs inputs_;
  StepEvents events_;

  // Where several batches make an update: their number and images so far, and the means over these images.
  std::int64_t batches_ = 0, images_ = 0;
  std::vector<Tensor> mean_gradients_;  // of the parameters that are trained, in order
  Tensor mean_loss_;

  // If ranks share each batch.
  std::optional<ShardedOptimizer> sharded_;
  std::optional<RankMeans> means_;
  std::int64_t images_here_ = 0;  // as images_, of this rank

  Shape latest_shape_;      // of the steps that were not replayed ...
  int steps_of_shape_ = 0;  // ... and how many of that shape there were in a row
  // One for each place where a loader puts its batches in turn. So a batch is copied to the device once, to where the
  // captured step reads it, while the step before still reads the other: its first layer needs the images to the end of
  // the backward pass. The graphs share all other memory, because they never run at the same time.
  std::vector<Captured> captured_;
  std::int64_t captured_rows_ = 0;    // of their batches, on all ranks; also after the graphs are dropped
  std::uint64_t captured_draws_ = 0;  // random numbers that a captured step takes
  std::string why_not_captured_;
};

}  // namespace twiddle
