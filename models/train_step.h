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
  bool record = true;  // where the device can, a shape of batch that comes again is recorded and played from then on
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
  bool recorded() const { return recording_ != nullptr; }
  const std::string& unrecorded() const { return unrecorded_; }  // why steps cannot be recorded; empty: they can

 private:
  Tensor step(const Batch& batch);
  Tensor play(const Batch& batch);
  Tensor step_without_recording(const Batch& batch);
  Variable loss_of(const Batch& batch, Tensor* sums);
  void record();
  void try_to_record(const Batch& batch);
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

  Shape latest_shape_;        // of the steps that were not played ...
  int steps_of_shape_ = 0;    // ... and how many of that shape there were in a row
  StepMarks recorded_marks_;  // the recording sets them anew at each play, as long as it lives
  std::unique_ptr<Recording> recording_;
  Batch recorded_batch_;  // where a recorded step finds its images
  Tensor recorded_loss_;
  std::uint64_t recorded_draws_ = 0;  // random numbers that a recorded step takes
  std::string unrecorded_;
};

}  // namespace twiddle
