#include "layers/conv/engines/engines.h"

#include <algorithm>
#include <limits>
#include <string>

#include "fft/frequency_buffers.h"
#include "framework/context.h"
#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

// Planes and their phases: element (i, j) of phase (a, b) is the plane's (i * stride_h + a - pad_h,
// j * stride_w + b - pad_w), zero outside of the plane. The phases of a plane follow each other, so that groups of
// channels stay together. A kernel smaller than its stride has one phase per tap: other phases overlap no tap.
struct Phases {
  int height, width, stride_h, stride_w, pad_h, pad_w;
  int phases_h, phases_w, phase_height, phase_width;
};

// Rows of phases, made by map_rows: a row's place is found once, and a GPU writes four elements at a time. There are
// fewer than 2^31 rows (why_no_stride_one): with 64-bit indices these kernels took longer than their memory traffic.
struct SplitRows {
  Phases p;
  Divisor phase_height, phases_w, phases_h;
  const float* planes;
  struct Row {
    const float* plane_row;  // null: outside the plane
    int width, stride, offset;
    TWIDDLE_HD float operator()(std::int64_t column) const {
      const int w = static_cast<int>(column) * stride + offset;
      return plane_row != nullptr && w >= 0 && w < width ? plane_row[w] : 0;
    }
  };
  TWIDDLE_HD Row row(std::int64_t index) const {
    const int row = static_cast<int>(index), phase = phase_height.quotient32(row), across = phases_w.quotient32(phase);
    const int plane = phases_h.quotient32(across);
    const int h = (row - phase * p.phase_height) * p.stride_h + across - plane * p.phases_h - p.pad_h;
    const bool inside = h >= 0 && h < p.height;
    return {inside ? planes + (std::int64_t(plane) * p.height + h) * p.width : nullptr, p.width, p.stride_w,
            phase - across * p.phases_w - p.pad_w};
  }
};

// Rows of planes from their phases. No kernel has seen what no phase holds: zero.
struct JoinPhases {
  Phases p;
  Divisor height, stride_w, stride_h;
  const float* phases;
  struct Row {
    const float* phase_row;  // of the first phase across; the others follow. Null: no phase holds this row
    int phase_size, phases, phase_width, stride, pad;
    Divisor by_stride;
    TWIDDLE_HD float operator()(std::int64_t column) const {
      const int w = static_cast<int>(column) + pad, j = by_stride.quotient32(w), phase = w - j * stride;
      const bool held = phase_row != nullptr && phase < phases && j < phase_width;
      return held ? phase_row[std::int64_t(phase) * phase_size + j] : 0;
    }
  };
  TWIDDLE_HD Row row(std::int64_t index) const {
    const int row = static_cast<int>(index), plane = height.quotient32(row), h = row - plane * p.height + p.pad_h;
    const int i = stride_h.quotient32(h), phase_h = h - i * p.stride_h;
    const bool held = phase_h < p.phases_h && i < p.phase_height;
    const std::int64_t first = (std::int64_t(plane) * p.phases_h + phase_h) * p.phases_w;
    return {held ? phases + (first * p.phase_height + i) * p.phase_width : nullptr,
            p.phase_height * p.phase_width,
            p.phases_w,
            p.phase_width,
            p.stride_w,
            p.pad_w,
            stride_w};
  }
};

int phases_across(const ConvProblem& problem) {
  return std::min(problem.stride_w, problem.kernel_w);
}
int phases_down(const ConvProblem& problem) {
  return std::min(problem.stride_h, problem.kernel_h);
}

std::string name_of(const Phases& p) {
  return join(p.height, "x", p.width, " stride ", p.stride_h, "x", p.stride_w, " pad ", p.pad_h, "x", p.pad_w, " to ",
              p.phases_h, "x", p.phases_w, " phases of ", p.phase_height, "x", p.phase_width);
}

Phases input_phases(const ConvProblem& outer, const ConvProblem& inner) {
  return {outer.height, outer.width,        outer.stride_h,       outer.stride_w, outer.pad_h,
          outer.pad_w,  phases_down(outer), phases_across(outer), inner.height,   inner.width};
}

Phases kernel_phases(const ConvProblem& outer, const ConvProblem& inner) {
  return {outer.kernel_h,     outer.kernel_w,       outer.stride_h, outer.stride_w, 0, 0,
          phases_down(outer), phases_across(outer), inner.kernel_h, inner.kernel_w};
}

Tensor split(Stream& stream, const Phases& phases, const Tensor& planes, Tensor result) {
  map_rows(stream, result.size() / phases.phase_width, phases.phase_width,
           SplitRows{phases, Divisor(phases.phase_height), Divisor(phases.phases_w), Divisor(phases.phases_h),
                     planes.read()},
           1, result.write());
  return result;
}

void join_phases(Stream& stream, const Phases& phases, const Tensor& from, Tensor& planes) {
  map_rows(stream, planes.size() / phases.width, phases.width,
           JoinPhases{phases, Divisor(phases.height), Divisor(phases.stride_w), Divisor(phases.stride_h), from.read()},
           1, planes.write());
}

ConvProblem stride_one(const ConvProblem& problem) {
  ConvProblem inner = problem;
  const std::int64_t channels = std::int64_t(problem.channels) * phases_down(problem) * phases_across(problem);
  if (channels > std::numeric_limits<int>::max())
    throw Error(ErrorKind::config, join("its strides make ", channels, " channels of ", problem.channels));
  inner.channels = static_cast<int>(channels);
  inner.kernel_h = (problem.kernel_h + problem.stride_h - 1) / problem.stride_h;
  inner.kernel_w = (problem.kernel_w + problem.stride_w - 1) / problem.stride_w;
  inner.height = problem.out_height() + inner.kernel_h - 1;
  inner.width = problem.out_width() + inner.kernel_w - 1;
  inner.stride_h = inner.stride_w = 1;
  inner.pad_h = inner.pad_w = 0;
  const std::int64_t most_rows =
      std::max(std::int64_t(problem.batch) * problem.channels * problem.height, inner.batch * channels * inner.height);
  if (most_rows > std::numeric_limits<int>::max())
    throw Error(ErrorKind::config, join("its planes have ", most_rows, " rows, more than 2^31"));
  return inner;
}

// Empty where it can be written so: strides far above the kernel make more phases than a problem can have.
std::string why_no_stride_one(const ConvProblem& problem) try {
  validate(stride_one(problem));
  return {};
} catch (const Error& error) {
  return error.what();
}

std::size_t bytes_of(const Shape& shape) {
  return static_cast<std::size_t>(count_of(shape)) * sizeof(float);
}

// A plan of the inner problem, between splitting what it reads into phases and joining those that it writes.
class PolyphasePlan final : public ConvPlan {
 public:
  PolyphasePlan(Facts facts, std::shared_ptr<const ConvPlan> plan, std::shared_ptr<FrequencyBuffers> buffers,
                const ConvProblem& outer, const ConvProblem& inner, ConvPass pass)
      : ConvPlan(std::move(facts)),
        plan_(std::move(plan)),
        buffers_(std::move(buffers)),
        input_(inner.input_shape()),
        weight_(inner.weight_shape()),
        input_phases_(input_phases(outer, inner)),
        kernel_phases_(kernel_phases(outer, inner)),
        pass_(pass) {}

  void run(Context& ctx, ConvOperands& operands) const override {
    Stream& stream = *ctx.stream;
    ConvOperands phased{{}, {}, operands.y, operands.bias, operands.relu, operands.mask};
    const bool keeps_x = ctx.training;  // else no other pass will read it
    phased.x = pass_ == ConvPass::backward_input ? Tensor(stream, input_)
                                                 : phases_of(stream, input_phases_, operands.x, input_, keeps_x);
    phased.w = pass_ == ConvPass::backward_weight ? Tensor(stream, weight_)
                                                  : phases_of(stream, kernel_phases_, operands.w, weight_, true);
    plan_->run(ctx, phased);
    if (pass_ == ConvPass::backward_input) join_phases(stream, input_phases_, phased.x, operands.x);
    if (pass_ == ConvPass::backward_weight) join_phases(stream, kernel_phases_, phased.w, operands.w);
  }

 private:
  // With `keep` the phases stay for the next pass that reads the same tensor in the same version: then the inner plan
  // finds its spectra again, too.
  Tensor phases_of(Stream& stream, const Phases& phases, const Tensor& planes, const Shape& shape, bool keep) const {
    const std::size_t bytes = bytes_of(shape);
    if (!keep || bytes > buffers_->budget()) return split(stream, phases, planes, Tensor(stream, shape));
    const auto make = [&] {
      const Tensor memory = Tensor::over(planes.device(), shape, buffers_->scratch(stream, bytes));
      return std::make_shared<Tensor>(split(stream, phases, planes, memory));
    };
    return *std::static_pointer_cast<Tensor>(buffers_->find_or_make(stream, {planes, {}, name_of(phases)}, make));
  }

  std::shared_ptr<const ConvPlan> plan_;
  std::shared_ptr<FrequencyBuffers> buffers_;
  Shape input_, weight_;
  Phases input_phases_, kernel_phases_;
  ConvPass pass_;
};

class PolyphaseEngine final : public ConvEngine {
 public:
  PolyphaseEngine(std::shared_ptr<ConvEngine> inner, std::size_t budget)
      : inner_(std::move(inner)),
        name_(join("polyphase(", inner_->name(), ")")),
        buffers_(std::make_shared<FrequencyBuffers>(budget)) {}
  std::string_view name() const override { return name_; }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    if (!serves(problem)) return {};
    const ConvProblem inner = stride_one(problem);
    ConvPlans wrapped;
    for (auto& plan : inner_->plans(inner, pass, most)) wrapped.push_back(wrap(std::move(plan), problem, inner, pass));
    return wrapped;
  }
  std::shared_ptr<const ConvPlan> plan(const ConvProblem& problem, ConvPass pass,
                                       std::string_view name) const override {
    if (!serves(problem)) return nullptr;
    const ConvProblem inner = stride_one(problem);
    auto plan = inner_->plan(inner, pass, name);
    return plan == nullptr ? nullptr : wrap(std::move(plan), problem, inner, pass);
  }
  std::string refusal(const ConvProblem& problem, ConvPass pass) const override {
    const std::string why = why_no_stride_one(problem);
    return why.empty() ? inner_->refusal(stride_one(problem), pass) : why;
  }
  std::string library() const override { return inner_->library(); }
  void forget() override {
    buffers_->forget();
    inner_->forget();
  }
  void forget_gone() override {
    buffers_->forget_gone();
    inner_->forget_gone();
  }

 private:
  static bool serves(const ConvProblem& problem) {
    return (problem.stride_h > 1 || problem.stride_w > 1) && problem.dilation == 1 &&
           why_no_stride_one(problem).empty();
  }
  std::shared_ptr<const ConvPlan> wrap(std::shared_ptr<const ConvPlan> plan, const ConvProblem& outer,
                                       const ConvProblem& inner, ConvPass pass) const {
    ConvPlan::Facts facts = plan->facts();
    facts.engine = name_;
    const std::size_t phases = bytes_of(inner.weight_shape()) + bytes_of(inner.input_shape());
    facts.scratch_bytes += phases;
    facts.kept_bytes += phases;
    if (!facts.shares.empty()) facts.shares = "phases of " + facts.shares;
    return std::make_shared<PolyphasePlan>(std::move(facts), std::move(plan), buffers_, outer, inner, pass);
  }
  std::shared_ptr<ConvEngine> inner_;
  std::string name_;
  std::shared_ptr<FrequencyBuffers> buffers_;  // of phases
};

}  // namespace

std::unique_ptr<ConvEngine> make_polyphase_engine(std::shared_ptr<ConvEngine> inner, std::size_t budget) {
  return std::make_unique<PolyphaseEngine>(std::move(inner), budget);
}

}  // namespace twiddle
