#pragma once
#include <string>

#include "framework/convolution.h"

namespace twiddle {

// How fast and how exact an engine does one pass, on random data.
struct Measurement {
  double milliseconds = 0;  // the best of a few runs
  double error = 0;         // conv_error of a sample; NaN where elements were left unwritten
  std::string failure;      // what it threw; then the error is infinite
};
Measurement measure(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass);

}  // namespace twiddle
