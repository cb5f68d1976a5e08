#pragma once
#include <compare>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/precision.h"
#include "framework/tensor.h"

namespace twiddle {

struct Context;

enum class ConvPass : std::uint8_t { forward, backward_input, backward_weight };
constexpr ConvPass every_pass[] = {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight};
std::string_view to_string(ConvPass pass);

// The error limit of a pass: the largest relative L2 error against sums in double, on random operands that are stored
// as `precision` says. fp32 2e-6; tf32 1e-3; bf16 2.5e-3, of which rounding the result takes 1.7e-3; fp16 7e-4. Only in
// bf16 do the passes differ: backward_weight has 2e-3, because its result is f32.
double promise(Precision precision, ConvPass pass = ConvPass::forward);

// One convolution (cross-correlation) as a plain value:
// x [batch, channels, height, width], w [filters, channels / groups, kernel_h, kernel_w], y [batch, filters, out_h,
// out_w]. With `precision` bf16 or fp16, x, w, y and the gradients of x and y are stored in that type; the gradient of
// w is f32.
struct ConvProblem {
  int batch = 1, channels = 1, height = 1, width = 1, filters = 1, kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation = 1, groups = 1;
  Precision precision = Precision::fp32;  // error limit and storage
  bool input_gradient = true;             // false: training has no use for it, as in a network's first layer
  bool weight_gradient = true;            // false: the weights are not trained
  bool bias = false, relu = false;        // what will follow it: plans are timed with that, and it changes no result

  int out_height() const { return (height + 2 * pad_h - dilation * (kernel_h - 1) - 1) / stride_h + 1; }
  int out_width() const { return (width + 2 * pad_w - dilation * (kernel_w - 1) - 1) / stride_w + 1; }
  Shape input_shape() const { return {batch, channels, height, width}; }
  Shape weight_shape() const { return {filters, channels / groups, kernel_h, kernel_w}; }
  Shape output_shape() const { return {batch, filters, out_height(), out_width()}; }
  bool in_training(ConvPass pass) const {
    return (input_gradient || pass != ConvPass::backward_input) &&
           (weight_gradient || pass != ConvPass::backward_weight);
  }
  double flops() const;  // 2 x multiply-adds of one pass, padding counted as data
  auto operator<=>(const ConvProblem&) const = default;
};
void validate(const ConvProblem& problem);          // throws what is wrong with it, with the numbers
std::string to_string(const ConvProblem& problem);  // "16x3x224x224 * 64x3x11x11 stride 4 pad 2"

// What a pass reads and writes; a gradient is passed as its tensor: backward_input reads w, y and writes
// x; backward_weight reads x, y and writes w; forward reads x, w and writes y, adds bias [filters] if it is defined,
// and applies ReLU if `relu` is set. An engine that also does the epilogue's backward pass uses `mask`, if defined, in
// both backward passes. `mask` is y of the forward pass: gradients count only where it is above zero. backward_weight
// then also writes the gradient of bias, if that is defined.
struct ConvOperands {
  Tensor x, w, y;
  Tensor bias = {};
  bool relu = false;
  Tensor mask = {};
};

// One way to do one pass of one problem on one device, ready to run. A plan is immutable. Between runs it may keep
// data, such as spectra, but never a decision.
class ConvPlan {
 public:
  struct Facts {
    std::string engine;                    // "fbfft"
    std::string name = {};                 // among the engine's plans: "32x32, tiles_3m"; empty: the engine's only plan
    std::size_t scratch_bytes = 0;         // taken from the pool while it runs
    std::size_t cast_bytes = 0;            // of these, casts of operands, which no workspace_limit can reduce
    std::size_t kept_bytes = 0;            // cached for a later pass; freed if the memory is needed
    bool deterministic = true;             // equal inputs give bitwise identical results
    bool fuses_epilogue_backward = false;  // it also does the epilogue's backward pass: see ConvOperands
    bool exact = false;                    // sums in double: the fallback if no other plan works; not benchmarked
    // The plan calls a vendor library. A NaN must stay in its image, filter and channel: unit tests show this for all
    // other plans; a vendor's plan is checked on the problem before its first use.
    bool vendor = false;
    // Names the data that the plan shares. Plans of one problem's passes with the same name reuse each other's data and
    // are timed in sequence; empty: it shares nothing.
    std::string shares = {};
    bool fits(std::size_t workspace_limit) const { return scratch_bytes - cast_bytes <= workspace_limit; }
  };
  explicit ConvPlan(Facts facts) : facts_(std::move(facts)) {}
  virtual ~ConvPlan() = default;
  const Facts& facts() const { return facts_; }
  virtual void run(Context& ctx, ConvOperands& operands) const = 0;

 private:
  Facts facts_;
};
std::string full_name(const ConvPlan& plan);  // "fbfft:32x32, tiles_3m"; of an only plan the engine's name

using ConvPlans = std::vector<std::shared_ptr<const ConvPlan>>;

// A convolution algorithm or library, as a list of plans. It neither benchmarks nor selects plans.
class ConvEngine {
 public:
  static constexpr std::size_t all_plans = std::numeric_limits<std::size_t>::max();

  virtual ~ConvEngine() = default;
  virtual std::string_view name() const = 0;
  // Returns at most `most` plans for a pass, the highest-ranked first; none: the engine does not support the pass.
  // Plans outlive the engine.
  virtual ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most = all_plans) const = 0;
  // Returns the plan with that name, or the first whose name begins with that word ("nhwc" for "nhwc (engine 18
  // k11=0)"), so that a stored choice can be rebuilt; null: there is none.
  virtual std::shared_ptr<const ConvPlan> plan(const ConvProblem& problem, ConvPass pass, std::string_view name) const;
  // Returns why the engine has no plan, if the problem alone does not show it; else empty.
  virtual std::string refusal(const ConvProblem& /*problem*/, ConvPass /*pass*/) const { return {}; }
  virtual bool pays(const ConvProblem& /*problem*/) const { return true; }  // false: the heuristic skips this engine
  // Whether its plans for a problem of 16 bits read and write that type, and accept f32, as a network's output is f32.
  // If not, cast_around (layers/conv/cast_around.h) makes such plans from the engine's tf32 plans.
  virtual bool takes_16_bits(const ConvProblem& /*problem*/, ConvPass /*pass*/) const { return false; }
  virtual std::string library() const { return {}; }  // "cuDNN 91900": the vendor library that does the work
  virtual void forget() {}                            // frees what its plans keep
  virtual void forget_gone() { forget(); }            // frees at least what belongs to freed tensors

  bool supports(const ConvProblem& problem, ConvPass pass) const { return !plans(problem, pass, 1).empty(); }
};

}  // namespace twiddle
