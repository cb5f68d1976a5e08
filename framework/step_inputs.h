#pragma once
#include "framework/optimizer.h"

namespace twiddle {

// The numbers that change from step to step, on the device, so that a captured step can be replayed with new ones.
class StepInputs {
 public:
  explicit StepInputs(Stream& stream);
  void set(Stream& stream, double rate, std::uint64_t random_position);  // one launch, no wait

  const Tensor& rate() const { return rate_; }
  const std::uint64_t* random_position() const;

 private:
  Tensor rate_, random_position_;  // the position in two words
};

}  // namespace twiddle
