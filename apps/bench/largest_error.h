#pragma once
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// A forward pass on numbers uniform in [-1, 1], as Lavin and Gray have them, with each element of y summed in double.
class UniformCheck {
 public:
  UniformCheck(Stream& stream, const ConvProblem& problem);
  double largest_error(Context& ctx, const ConvPlan& plan) const;  // absolute; NaN where an element is

 private:
  Tensor x_, w_;
  std::vector<double> expected_;
  Shape shape_;
};

}  // namespace twiddle
