#include "layers/conv/polyphase_engine.h"

#include <limits>
#include <string>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

// Planes and their phases: element (i, j) of phase (a, b) is the plane's (i * stride_h + a - pad_h,
// j * stride_w + b - pad_w), zero outside of the plane. The phases of a plane follow each other, so that groups of
// channels stay together.
struct Phases {
  int height, width, stride_h, stride_w, pad_h, pad_w;
  int phase_height, phase_width;
};

struct Split {  // one call an element of a phase
  Phases p;
  Divisor phase_width, phase_height, stride_w, stride_h;
  const float* planes;
  float* phases;
  TWIDDLE_HD void operator()(std::int64_t index) const {
    const std::int64_t row = phase_width.quotient(index), phase = phase_height.quotient(row);
    const std::int64_t across = stride_w.quotient(phase), plane = stride_h.quotient(across);
    const std::int64_t h = (row - phase * p.phase_height) * p.stride_h + across - plane * p.stride_h - p.pad_h;
    const std::int64_t w = (index - row * p.phase_width) * p.stride_w + phase - across * p.stride_w - p.pad_w;
    const bool inside = h >= 0 && h < p.height && w >= 0 && w < p.width;
    phases[index] = inside ? planes[(plane * p.height + h) * p.width + w] : 0;
  }
};

struct Join {  // one call an element of a plane; what no phase holds was seen by no kernel: zero
  Phases p;
  Divisor width, height, stride_w, stride_h;
  const float* phases;
  float* planes;
  TWIDDLE_HD void operator()(std::int64_t index) const {
    const std::int64_t row = width.quotient(index), plane = height.quotient(row);
    const std::int64_t h = row - plane * p.height + p.pad_h, w = index - row * p.width + p.pad_w;
    const std::int64_t i = stride_h.quotient(h), j = stride_w.quotient(w);
    const std::int64_t phase = (plane * p.stride_h + h - i * p.stride_h) * p.stride_w + w - j * p.stride_w;
    const bool held = i < p.phase_height && j < p.phase_width;
    planes[index] = held ? phases[(phase * p.phase_height + i) * p.phase_width + j] : 0;
  }
};

Phases input_phases(const ConvProblem& outer, const ConvProblem& inner) {
  return {outer.height, outer.width, outer.stride_h, outer.stride_w,
          outer.pad_h,  outer.pad_w, inner.height,   inner.width};
}

Phases kernel_phases(const ConvProblem& outer, const ConvProblem& inner) {
  return {outer.kernel_h, outer.kernel_w, outer.stride_h, outer.stride_w, 0, 0, inner.kernel_h, inner.kernel_w};
}

Tensor split(Stream& stream, const Phases& phases, const Tensor& planes, const Shape& shape) {
  Tensor result(stream, shape);
  for_each_index(stream, result.size(),
                 Split{phases, Divisor(phases.phase_width), Divisor(phases.phase_height), Divisor(phases.stride_w),
                       Divisor(phases.stride_h), planes.read(), result.write()});
  return result;
}

void join_phases(Stream& stream, const Phases& phases, const Tensor& from, Tensor& planes) {
  for_each_index(stream, planes.size(),
                 Join{phases, Divisor(phases.width), Divisor(phases.height), Divisor(phases.stride_w),
                      Divisor(phases.stride_h), from.read(), planes.write()});
}

ConvProblem stride_one(const ConvProblem& problem) {
  ConvProblem inner = problem;
  const std::int64_t channels = std::int64_t(problem.channels) * problem.stride_h * problem.stride_w;
  if (channels > std::numeric_limits<int>::max())
    throw Error(ErrorKind::config, join("its strides make ", channels, " channels of ", problem.channels));
  inner.channels = static_cast<int>(channels);
  inner.kernel_h = (problem.kernel_h + problem.stride_h - 1) / problem.stride_h;
  inner.kernel_w = (problem.kernel_w + problem.stride_w - 1) / problem.stride_w;
  inner.height = problem.out_height() + inner.kernel_h - 1;
  inner.width = problem.out_width() + inner.kernel_w - 1;
  inner.stride_h = inner.stride_w = 1;
  inner.pad_h = inner.pad_w = 0;
  return inner;
}

// Empty where it can be written so: strides far above the kernel make more phases than there is room for.
std::string why_no_stride_one(const ConvProblem& problem) try {
  validate(stride_one(problem));
  return {};
} catch (const Error& error) {
  return error.what();
}

class PolyphaseEngine final : public ConvEngine {
 public:
  explicit PolyphaseEngine(std::unique_ptr<ConvEngine> inner)
      : inner_(std::move(inner)), name_(join("polyphase(", inner_->name(), ")")) {}
  std::string_view name() const override { return name_; }
  bool supports(const ConvProblem& problem, ConvPass pass) const override {
    return (problem.stride_h > 1 || problem.stride_w > 1) && problem.dilation == 1 &&
           why_no_stride_one(problem).empty() && inner_->supports(stride_one(problem), pass);
  }
  std::string refusal(const ConvProblem& problem, ConvPass pass) const override {
    const std::string why = why_no_stride_one(problem);
    return why.empty() ? inner_->refusal(stride_one(problem), pass) : why;
  }
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override {
    const ConvProblem inner = stride_one(problem);
    return inner_->workspace_bytes(inner, pass) + bytes_of(inner.weight_shape()) + bytes_of(inner.input_shape());
  }
  std::size_t kept_bytes(const ConvProblem& problem, ConvPass pass) const override {
    return inner_->kept_bytes(stride_one(problem), pass);
  }
  void forget() override { inner_->forget(); }
  bool by_name_only() const override { return inner_->by_name_only(); }
  bool does_epilogue_backward() const override { return inner_->does_epilogue_backward(); }
  std::string library() const override { return inner_->library(); }
  std::string details(const ConvProblem& problem, ConvPass pass) const override {
    return inner_->details(stride_one(problem), pass);
  }
  void tune(Context& ctx, const ConvProblem& problem) override { inner_->tune(ctx, stride_one(problem)); }
  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) override {
    const ConvProblem inner = stride_one(problem);
    const Phases input = input_phases(problem, inner), kernel = kernel_phases(problem, inner);
    Stream& stream = *ctx.stream;
    ConvOperands phased{{}, {}, operands.y, operands.bias, operands.relu, operands.mask};
    phased.x = pass == ConvPass::backward_input ? Tensor(stream, inner.input_shape())
                                                : split(stream, input, operands.x, inner.input_shape());
    phased.w = pass == ConvPass::backward_weight ? Tensor(stream, inner.weight_shape())
                                                 : split(stream, kernel, operands.w, inner.weight_shape());
    inner_->run(ctx, inner, pass, phased);
    if (pass == ConvPass::backward_input) join_phases(stream, input, phased.x, operands.x);
    if (pass == ConvPass::backward_weight) join_phases(stream, kernel, phased.w, operands.w);
  }

 private:
  static std::size_t bytes_of(const Shape& shape) { return static_cast<std::size_t>(count_of(shape)) * sizeof(float); }
  std::unique_ptr<ConvEngine> inner_;
  std::string name_;
};

}  // namespace

std::unique_ptr<ConvEngine> make_polyphase_engine(std::unique_ptr<ConvEngine> inner) {
  return std::make_unique<PolyphaseEngine>(std::move(inner));
}

}  // namespace twiddle
