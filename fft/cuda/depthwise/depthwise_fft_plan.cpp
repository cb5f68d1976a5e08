#include "fft/cuda/depthwise/depthwise_fft_plan.h"

#include <utility>

#include "fft/cuda/depthwise/product_sums.h"
#include "framework/context.h"

namespace twiddle {

using small_fft::Complex;
using small_fft::DepthwisePlanes;

DepthwiseFftPlan::DepthwiseFftPlan(Facts facts, const ConvProblem& problem, ConvPass pass,
                                   const small_fft::DepthwiseKernels& kernels, int parts,
                                   std::shared_ptr<FrequencyBuffers> buffers)
    : ConvPlan(std::move(facts)),
      problem_(problem),
      pass_(pass),
      kernels_(kernels),
      parts_(parts),
      buffers_(std::move(buffers)) {}

void DepthwiseFftPlan::run(Context& ctx, ConvOperands& operands) const {
  if (pass_ == ConvPass::backward_weight)
    correlate(ctx, operands);
  else
    convolve(ctx, operands);
}

// Forward x with w to y; backwards with the roles of x and y swapped.
void DepthwiseFftPlan::convolve(Context& ctx, ConvOperands& operands) const {
  Stream& stream = *ctx.stream;
  const bool forward = pass_ == ConvPass::forward;
  const ConvOperand from = forward ? ConvOperand::x : ConvOperand::y, to = forward ? ConvOperand::y : ConvOperand::x;
  const std::shared_ptr<void> kernels = spectra(ctx, operands, ConvOperand::w);
  small_fft::ConvolveArguments arguments{.from = planes(from), .to = planes(to)};
  arguments.source = tensor_of(operands, from).read();
  arguments.target = tensor_of(operands, to).write();
  arguments.kernels = static_cast<const Complex*>(kernels.get());
  arguments.conjugate = forward;
  arguments.bias = forward && operands.bias.defined() ? operands.bias.read() : nullptr;
  arguments.relu = forward && operands.relu;
  bool ran = false;
  const auto run = [&](void* kept) {
    kernels_.convolve(stream, arguments, static_cast<Complex*>(kept));
    ran = true;
  };
  // Spectra of x and y are for backward_weight, which does not follow in evaluation; and there may be some already.
  if (buffers_ != nullptr && ctx.training)
    buffers_->spectrum(stream, subject(ctx, operands, from), spectrum_bytes(planes(from).count()), run);
  if (!ran) run(nullptr);
}

void DepthwiseFftPlan::correlate(Context& ctx, ConvOperands& operands) const {
  Stream& stream = *ctx.stream;
  std::shared_ptr<void> sums;
  if (buffers_ != nullptr) {
    sums = product_sums(ctx, operands);
  } else {
    sums = stream.allocate(spectrum_bytes(std::int64_t(parts_) * problem_.channels));
    kernels_.correlate(stream, {planes(ConvOperand::x), planes(ConvOperand::y), operands.x.read(), operands.y.read(),
                                static_cast<Complex*>(sums.get()), parts_});
  }
  kernels_.inverse_sum(stream,
                       {planes(ConvOperand::w), static_cast<const Complex*>(sums.get()), operands.w.write(), parts_});
}

std::shared_ptr<void> DepthwiseFftPlan::product_sums(Context& ctx, ConvOperands& operands) const {
  const std::shared_ptr<void> x = spectra(ctx, operands, ConvOperand::x);
  const std::shared_ptr<void> y = spectra(ctx, operands, ConvOperand::y);
  std::shared_ptr<void> sums = buffers_->scratch(*ctx.stream, spectrum_bytes(std::int64_t(parts_) * problem_.channels));
  small_fft::sum_products(*ctx.stream, {.size = kernels_.size,
                                        .images = problem_.batch,
                                        .parts = parts_,
                                        .channels = Divisor(problem_.channels),
                                        .threads = Divisor(small_fft::ProductSums::threads_of(kernels_.size)),
                                        .x = static_cast<const Complex*>(x.get()),
                                        .y = static_cast<const Complex*>(y.get()),
                                        .sums = static_cast<Complex*>(sums.get())});
  return sums;
}

// As another pass left them, or made now.
std::shared_ptr<void> DepthwiseFftPlan::spectra(Context& ctx, ConvOperands& operands, ConvOperand operand) const {
  const DepthwisePlanes from = planes(operand);
  const std::size_t bytes = spectrum_bytes(from.count());
  const auto transform = [&](void* target) {
    kernels_.convolve(*ctx.stream, {.from = from, .to = {}, .source = tensor_of(operands, operand).read()},
                      static_cast<Complex*>(target));
  };
  if (buffers_ != nullptr) return buffers_->spectrum(*ctx.stream, subject(ctx, operands, operand), bytes, transform);
  std::shared_ptr<void> block = ctx.stream->allocate(bytes);
  transform(block.get());
  return block;
}

// In evaluation w stays as it is from batch to batch.
FrequencyBuffers::Subject DepthwiseFftPlan::subject(Context& ctx, ConvOperands& operands, ConvOperand operand) const {
  const FrequencyGrid grid = whole_plane(problem_, kernels_.size, kernels_.size);
  const bool in_turn = !ctx.training && operand == ConvOperand::w;
  return {tensor_of(operands, operand), planes_of(problem_, operand, grid), facts().engine, {}, in_turn};
}

// With x at `pad` and y at 0 of the points of a transform.
DepthwisePlanes DepthwiseFftPlan::planes(ConvOperand operand) const {
  const ConvProblem& p = problem_;
  switch (operand) {
    case ConvOperand::x:
      return {{p.height, p.width, p.pad_h, p.pad_w}, Divisor(p.batch), p.channels};
    case ConvOperand::y:
      return {{p.out_height(), p.out_width(), 0, 0}, Divisor(p.batch), p.channels};
    default:
      return {{p.kernel_h, p.kernel_w, 0, 0}, Divisor(1), p.channels};
  }
}

std::size_t DepthwiseFftPlan::spectrum_bytes(std::int64_t planes) const {
  return static_cast<std::size_t>(planes * kernels_.spectrum_numbers) * sizeof(Complex);
}

}  // namespace twiddle
