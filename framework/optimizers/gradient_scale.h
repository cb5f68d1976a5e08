#pragma once
#include <cstdint>

#include "framework/optimizers/optimizer.h"

namespace twiddle {

// The factor of the loss that keeps gradients within the range of f16 (Micikevicius et al. 2018), and its history.
struct LossScale {
  // A scale that adapts begins at `first`. A gradient that is not finite divides it by two, to 1 at least, and skips
  // the update; `period` updates in a row double it, to `largest` at most.
  static constexpr double first = 65536, largest = 16777216;
  static constexpr int period = 2000;

  double value = 1;
  bool adapts = false;
  std::int64_t good_steps = 0;     // updates since the scale changed; not counted if it does not adapt
  std::int64_t skipped_steps = 0;  // in all
  std::int64_t left_out = 0;       // images of the epoch whose loss was left out
};

// Losses of an update and of the epoch, each as TrainStep::sums() has them, and the update's images, one element.
struct LossSums {
  Tensor of_update, of_epoch, images;
};

// Clips an update's gradients by their L2 norm, and divides them by the loss scale: as one factor for the update. It
// lives on the device, so that a captured step decides in each replay whether it updates.
class GradientScale {
 public:
  // `clip_norm`: the largest norm that the gradients, divided by the scale, may have; 0: any.
  GradientScale(Stream& stream, double clip_norm, const LossScale& loss_scale = {});

  // Before each update, with gradient_norm(). Returns the numbers with which the update scales and clips. If the norm
  // or the update's loss is not finite, the update changes nothing. That is bad, as in StepNumbers, unless the scale
  // adapts and is above 1: then the step is skipped. After a step that was bad, nothing changes any more. `losses`, if
  // given, are added to the epoch's and set to 0; a loss that is not finite is left out.
  StepNumbers begin_update(Stream& stream, const Tensor& norm, StepNumbers numbers, LossSums* losses = nullptr);

  const Tensor& loss_scale() const { return scale_; }  // one element: of the next step
  const Tensor& state() const { return state_; }       // four elements: loss scale, good steps, skipped steps, left out
  LossScale read(Stream& stream) const;                // waits for the stream
  void begin_epoch(Stream& stream);                    // nothing is left out yet

 private:
  float clip_norm_;
  bool adapts_;
  Tensor state_, scale_, guard_, factor_;
};

}  // namespace twiddle
