#pragma once
#include <cstdint>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// The pass's inputs filled with random numbers (uniform, mean 0, deviation 1), its result with NaN.
ConvOperands random_operands(Stream& stream, const ConvProblem& problem, ConvPass pass);

// An engine may leave a tail unwritten that no sample meets. Waits for the stream.
bool holds_nan(Stream& stream, const Tensor& result);

// A sample of a pass's result, summed once on the operands' device, that any number of engines are held to. Products
// are exact and sums taken in double on a GPU, in short stretches of float on the CPU (1e-7 relative).
class ConvCheck {
 public:
  ConvCheck(Stream& stream, const ConvProblem& problem, ConvPass pass, const ConvOperands& operands, int samples);
  // Relative L2 over the sample; NaN where any element is, sampled or not. Waits for the stream.
  double error(Stream& stream, const Tensor& result) const;

 private:
  std::int64_t count_;
  std::vector<double> expected_;
};

}  // namespace twiddle
