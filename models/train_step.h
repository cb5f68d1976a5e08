#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "framework/step_inputs.h"
#include "layers/sequential.h"

namespace twiddle {

struct StepOptions {
  double clip_norm = 0;  // 0: gradients are not clipped
  double label_smoothing = 0;
  bool record = true;  // where the device can, a batch whose memory comes again is recorded and played from then on
  bool marks = false;  // between the phases
};

// Moments of a step: its start and the end of each phase.
struct StepMarks {
  std::shared_ptr<Mark> start, forward, backward, update;
};

// Forward, loss, backward, update: one step of training, again and again.
class TrainStep {
 public:
  TrainStep(Context& ctx, const Sequential& net, Optimizer& optimizer, const StepOptions& options);

  // The loss, one element, stays on the device, and is that of the latest step alone. A loss that is not finite leaves
  // weights and optimizer as they were, in this step and in all that follow until sums() are set to numbers again.
  Tensor run(const Batch& batch, double rate);

  // For a run that ends: the parameter whose gradient the backward pass finds not to be finite first; empty: none.
  std::string first_bad_gradient(const Batch& batch);

  // Two elements, over the steps since they were 0: loss times images, and images whose label came first.
  Tensor& sums() { return sums_; }
  const StepMarks& marks() const { return marks_; }  // of the latest step
  bool recorded() const { return !recorded_.empty(); }
  const std::string& unrecorded() const { return unrecorded_; }  // why steps cannot be recorded; empty: they can

 private:
  // A step that was recorded on one batch, and reads that batch's memory at each play.
  struct Recorded {
    Batch batch;
    std::unique_ptr<Recording> recording;
    Tensor loss;
    StepMarks marks;  // set anew at each play
  };

  Tensor step(const Batch& batch);
  Tensor play(const Recorded& recorded);
  Tensor step_beside_recordings(const Batch& batch);
  Variable loss_of(const Batch& batch, Tensor* sums);
  const Recorded* recorded_on(const Batch& batch) const;  // null: none
  bool is_time_to_record(const Batch& batch);
  void try_to_record(const Batch& batch);
  void record(const Batch& batch);
  void give_up_recording(const std::string& why);
  void set_mark(std::shared_ptr<Mark>& mark);

  Context& ctx_;
  const Sequential& net_;
  Optimizer& optimizer_;
  StepOptions options_;
  std::vector<Parameter*> parameters_;
  StepInputs inputs_;
  Tensor sums_;
  StepMarks marks_;

  Shape latest_shape_;      // of the steps that were not played ...
  int steps_of_shape_ = 0;  // ... and how many of that shape there were in a row
  // One for each place where a loader puts its batches in turn. So a batch is copied to the device once, to where the
  // recorded step reads it, while the step before still reads the other: its first layer needs the images to the end of
  // the backward pass. All else that the recordings take is the same memory, for they take turns.
  std::vector<Recorded> recorded_;
  std::uint64_t recorded_draws_ = 0;  // random numbers that a recorded step takes
  std::string unrecorded_;
};

}  // namespace twiddle
