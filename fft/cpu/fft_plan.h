#pragma once
#include <cstdint>
#include <vector>

#include "fft/cpu/kernels.h"

namespace twiddle {

// A complex transform: its factors and the twiddle factors between them.
class FftPlan {
 public:
  static bool can(int points);  // whether it is a product of 2, 3, 5 and 7
  explicit FftPlan(int points);
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;
  const FftSteps& steps() const { return steps_; }  // valid during the plan's lifetime
  double operations() const { return operations_; }

 private:
  FftSteps steps_;
  std::vector<float> roots_[FftSteps::most];  // of each step
  double operations_ = 0;
};

// cos and sin of 2 pi i / points, for i up to a quarter of `points`: [i][cosine, sine].
std::vector<float> roots_of_row(int points);

// cos and sin of 2 pi bin i / points, for bins up to half of `points` and elements i < `few`: [bin][i][cosine, sine].
std::vector<float> roots_of_few(int points, int few);

}  // namespace twiddle
