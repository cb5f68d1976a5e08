#pragma once
#include <cstdint>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// The pass's inputs filled with random numbers (uniform, mean 0, deviation 1), its result with NaN.
ConvOperands random_operands(Stream& stream, const ConvProblem& problem, ConvPass pass);

// A sample of a pass's result, summed once on the operands' device, that any number of engines are held to. Products
// are exact and sums taken in double on a GPU, in short stretches of float on the CPU (1e-7 relative).
class ConvCheck {
 public:
  ConvCheck(Stream& stream, const ConvProblem& problem, ConvPass pass, const ConvOperands& operands, int samples);
  double error(Stream& stream, const float* result) const;  // relative L2 over the sample; waits for the stream

 private:
  std::int64_t count_;
  std::vector<double> expected_;
};

}  // namespace twiddle
