#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/context.h"
#include "framework/tensor.h"

namespace twiddle {

// Classes of error, not of storage: the relative L2 error of a pass against a double reference on random normal data.
enum class Precision : std::uint8_t { fp32, tf32, bf16 };
double promise(Precision precision);  // 2e-6, 1e-3, 1e-2
std::string_view to_string(Precision precision);

enum class ConvPass : std::uint8_t { forward, backward_input, backward_weight };
constexpr ConvPass every_pass[] = {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight};
std::string_view to_string(ConvPass pass);

// One convolution (cross-correlation) as a plain value:
// x [batch, channels, height, width], w [filters, channels / groups, kernel_h, kernel_w], y [batch, filters, out_h,
// out_w].
struct ConvProblem {
  int batch = 1, channels = 1, height = 1, width = 1, filters = 1, kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation = 1, groups = 1;
  Precision precision = Precision::fp32;  // the class that the result must keep
  bool input_gradient = true;             // false: training has no use for it, as in a network's first layer

  int out_height() const { return (height + 2 * pad_h - dilation * (kernel_h - 1) - 1) / stride_h + 1; }
  int out_width() const { return (width + 2 * pad_w - dilation * (kernel_w - 1) - 1) / stride_w + 1; }
  Shape input_shape() const { return {batch, channels, height, width}; }
  Shape weight_shape() const { return {filters, channels / groups, kernel_h, kernel_w}; }
  Shape output_shape() const { return {batch, filters, out_height(), out_width()}; }
  bool in_training(ConvPass pass) const { return input_gradient || pass != ConvPass::backward_input; }
  double flops() const;  // 2 x multiply-adds of one pass, padding counted as data
  auto operator<=>(const ConvProblem&) const = default;
};
void validate(const ConvProblem& problem);          // throws what is wrong with it, with the numbers
std::string to_string(const ConvProblem& problem);  // "16x3x224x224 * 64x3x11x11 stride 4 pad 2"

// What a pass reads and writes; a gradient takes its owner's place: backward_input reads w, y and writes x;
// backward_weight reads x, y and writes w; forward reads x, w and writes y, adding bias [filters] where it is defined,
// and leaving nothing below zero with relu. An engine that does the epilogue's way back, too, heeds `mask` in both
// backward passes where it is defined: y of the forward pass, whose gradient counts only where y is above zero; and
// backward_weight writes the gradient of bias where that is defined.
struct ConvOperands {
  Tensor x, w, y;
  Tensor bias = {};
  bool relu = false;
  Tensor mask = {};
};

// One way to compute a convolution.
class ConvEngine {
 public:
  virtual ~ConvEngine() = default;
  virtual std::string_view name() const = 0;
  virtual bool supports(const ConvProblem& problem, ConvPass pass) const = 0;  // false: run() would throw
  // Why it does not, where that is not plain from the problem; empty: nothing to tell.
  virtual std::string refusal(const ConvProblem& /*problem*/, ConvPass /*pass*/) const { return {}; }
  virtual std::size_t workspace_bytes(const ConvProblem& problem,
                                      ConvPass pass) const = 0;  // scratch taken from the pool while it runs
  virtual bool by_name_only() const { return false; }  // neither rule nor measurement takes it: another includes it
  virtual bool pays(const ConvProblem& /*problem*/) const { return true; }  // false: the rule leaves it to others
  // What stays in memory after a pass, in hope of use by a later one; gone where others need the room.
  virtual std::size_t kept_bytes(const ConvProblem& /*problem*/, ConvPass /*pass*/) const { return 0; }
  virtual void forget() {}  // gives it back
  // What one pass leaves behind helps the next of the same layer: such an engine is measured for the passes together.
  virtual bool shares_work_between_passes() const { return false; }
  virtual bool does_epilogue_backward() const { return false; }  // see ConvOperands
  virtual std::string library() const { return {}; }             // "cuDNN 91900": whose speed is not this program's own
  // What it settled on where it has several ways of its own, for tables and logs; empty: nothing to tell.
  virtual std::string details(const ConvProblem& /*problem*/, ConvPass /*pass*/) const { return {}; }
  // Chooses among several ways of its own by their time, for all passes of the problem. Who wants the same bits from
  // run to run does not ask for it: run() then goes the way that is likely best.
  virtual void tune(Context& /*ctx*/, const ConvProblem& /*problem*/) {}
  virtual void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) = 0;
};

}  // namespace twiddle
