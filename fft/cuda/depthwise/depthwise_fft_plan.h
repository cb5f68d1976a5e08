#pragma once
#include <memory>

#include "fft/cuda/depthwise/depthwise_kernels.h"
#include "fft/frequency_buffers.h"
#include "framework/convolution.h"

namespace twiddle {

// A pass by one size of transforms. Without `buffers` no spectrum of x or y is ever in memory. With them, passes share:
// each leaves the spectrum of the planes it reads there, and backward_weight needs no more than both of these.
class DepthwiseFftPlan final : public ConvPlan {
 public:
  // `parts`: number of parts into which the images are divided for a sum over them.
  DepthwiseFftPlan(Facts facts, const ConvProblem& problem, ConvPass pass, const small_fft::DepthwiseKernels& kernels,
                   int parts, std::shared_ptr<FrequencyBuffers> buffers);
  void run(Context& ctx, ConvOperands& operands) const override;

 private:
  void convolve(Context& ctx, ConvOperands& operands) const;
  void correlate(Context& ctx, ConvOperands& operands) const;
  std::shared_ptr<void> product_sums(Context& ctx, ConvOperands& operands) const;
  std::shared_ptr<void> spectra(Context& ctx, ConvOperands& operands, ConvOperand operand) const;
  FrequencyBuffers::Subject subject(Context& ctx, ConvOperands& operands, ConvOperand operand) const;
  small_fft::DepthwisePlanes planes(ConvOperand operand) const;
  std::size_t spectrum_bytes(std::int64_t planes) const;

  ConvProblem problem_;
  ConvPass pass_;
  small_fft::DepthwiseKernels kernels_;
  int parts_;
  std::shared_ptr<FrequencyBuffers> buffers_;
};

}  // namespace twiddle
