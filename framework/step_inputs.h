#pragma once
#include "framework/optimizers/optimizer.h"

namespace twiddle {

// The numbers that change from step to step, on the device, so that a captured step can be replayed with new ones.
class StepInputs {
 public:
  struct Values {
    double rate = 0;
    std::uint64_t random_position = 0;
    double gradient_share = 1;  // of the batch in the mean gradient of those that go into one update
    double rank_share = 1;      // of this rank's rows in the batch ...
    double update_share = 1;    // ... and in all batches of the update
    double average_share = 1;   // of the new weights in their moving average
    double images = 0;          // of the update so far, of all ranks
  };
  // `loss_scale`, one element, is read at each set(); undefined: 1.
  StepInputs(Stream& stream, const Tensor& guard, const Tensor& loss_scale = {});
  void set(Stream& stream, const Values& values);  // one launch, no wait; includes close_update()
  // Adds what the latest update found to the guard: if it found a bad element, later updates change nothing.
  void close_update(Stream& stream);

  StepNumbers for_update() const { return {rate_, guard_, found_bad_}; }
  StepNumbers for_average() const { return {average_share_, guard_, found_bad_}; }
  const Tensor& gradient_share() const { return gradient_share_; }
  const Tensor& rank_share() const { return rank_share_; }
  const Tensor& update_share() const { return update_share_; }
  const Tensor& images() const { return images_; }
  const Tensor& loss_factor() const { return loss_factor_; }  // rank_share times the loss scale
  const std::uint64_t* random_position() const;

 private:
  Tensor rate_, gradient_share_, rank_share_, update_share_, average_share_, images_;
  Tensor random_position_;  // in two words
  Tensor guard_, found_bad_;
  Tensor loss_scale_, loss_factor_;
};

}  // namespace twiddle
