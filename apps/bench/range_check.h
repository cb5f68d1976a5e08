#pragma once
#include <string>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// Numbers that are hard for products whose factors are rounded or split: of many magnitudes, or nearly all of one.
// A pass sums over k, and each row of its result comes from its own part of the first factor:
//   forward          images of x, filters of w; k are channels
//   backward_input   images of y, channels of w; k are filters
//   backward_weight  filters of y, channels of x; k are images
struct Range {
  // By which a uniform number in [-1, 1) is multiplied: the first factor's by its row, k and place in memory, the
  // second's by k.
  double (*first)(double row, double k, bool marked);
  double (*second)(double k);
  const char* name;
  bool positive = false;  // uniform in [0, 1)
};
const std::vector<Range>& hard_ranges();

// The errors of a pass on numbers of one range, against sums in double of some elements of up to 64 rows, and of all
// elements of a row that the range's one large number meets.
class RangeCheck {
 public:
  RangeCheck(Stream& stream, const ConvProblem& problem, ConvPass pass, const Range& range);

  struct Errors {
    double all = 0, worst_row = 0;  // relative L2: of all these elements, and of the worst row by its own norm
  };
  // NaN where an element is.
  Errors errors(Context& ctx, const ConvPlan& plan) const;

 private:
  ConvPass pass_;
  ConvOperands operands_;             // without the result
  Shape result_;                      // what it is to be
  std::int64_t row_length_ = 0;       // elements a row of it
  std::vector<std::int64_t> places_;  // of the elements, row by row
  std::vector<double> expected_;
};

}  // namespace twiddle
