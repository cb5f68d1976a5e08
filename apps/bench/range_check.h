#pragma once
#include <string>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// Inputs that are hard for products with rounded or split factors: numbers of many magnitudes, or nearly all of one. A
// pass sums over k, and each row of its result depends on its own part of the first factor:
// - forward: images of x, filters of w; k are channels
// - backward_input: images of y, channels of w; k are filters
// - backward_weight: filters of y, channels of x; k are images
struct Range {
  // Scales of a uniform number in [-1, 1), to which the mean is added first: by row, k and memory position for the
  // first factor, by k for the second.
  double (*first)(double row, double k, bool marked);
  double (*second)(double k);
  const char* name;
  double first_mean = 0, second_mean = 0;
  bool exceeds_fp16 = false;  // operands or results are outside its range
};
const std::vector<Range>& hard_ranges();

// The errors of a pass on numbers of one range, stored as the problem's precision says, against sums in double. Checks
// samples of up to 64 rows, and all elements of the row that contains the range's one large number.
class RangeCheck {
 public:
  RangeCheck(Stream& stream, const ConvProblem& problem, ConvPass pass, const Range& range);

  struct Errors {
    double all = 0, worst_row = 0;  // relative L2: over all checked elements; of the worst row, by its own norm
  };
  // NaN if an element is NaN.
  Errors errors(Context& ctx, const ConvPlan& plan) const;

 private:
  ConvPass pass_;
  ConvOperands operands_;             // without the result
  Shape result_;                      // shape of the result
  DType type_;                        // of the result
  std::int64_t row_length_ = 0;       // elements per row of the result
  std::vector<std::int64_t> places_;  // indices of the checked elements, row by row
  std::vector<double> expected_;
};

}  // namespace twiddle
