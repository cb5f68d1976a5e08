#pragma once
#include "framework/optimizer.h"

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
  };
  explicit StepInputs(Stream& stream);
  void set(Stream& stream, const Values& values);  // one launch, no wait

  const Tensor& rate() const { return rate_; }
  const Tensor& gradient_share() const { return gradient_share_; }
  const Tensor& rank_share() const { return rank_share_; }
  const Tensor& update_share() const { return update_share_; }
  const Tensor& average_share() const { return average_share_; }
  const std::uint64_t* random_position() const;

 private:
  Tensor rate_, gradient_share_, rank_share_, update_share_, average_share_;
  Tensor random_position_;  // in two words
};

}  // namespace twiddle
