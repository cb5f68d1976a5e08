#pragma once
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// Checks a forward pass on numbers uniform in [-1, 1], as in Lavin and Gray, against sums in double for every element
// of y.
class UniformCheck {
 public:
  UniformCheck(Stream& stream, const ConvProblem& problem);
  double largest_error(Context& ctx, const ConvPlan& plan) const;  // absolute; NaN if an element is NaN

 private:
  Tensor x_, w_;
  std::vector<double> expected_;
  Shape shape_;
};

}  // namespace twiddle
