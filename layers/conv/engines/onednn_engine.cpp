#include "layers/conv/engines/engines.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "framework/context.h"
#include "framework/cpu/gemm.h"
#include "framework/error.h"
#include "layers/conv/engines/cpu_rule.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/engines/onednn_plan.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/tuner/pieces.h"
#include "layers/conv/tuner/tuner.h"

namespace twiddle {

namespace {

using Description = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using onednn::Operand, onednn::Plan;

// oneDNN sums one by one in float, which loses 1.9e-8 times the root of their number (measured): beyond 9,216, fp32's
// error limit is near. Longer sums are computed piece by piece, over images and places for a weight's gradient, where
// pieces cost time, and sooner over channels or filters, where they do not: so that every image and filter is within
// the limit.
constexpr std::int64_t longest_over_places = 9216, longest_over_planes = 4608;

// Where the plain tensors of a run lie.
struct Places {
  const float *x, *w, *y, *bias;
  void* result;                     // where it goes in the primitive's own layout; null: into the written tensor
  std::optional<Version> gradient;  // of y, where it may be kept or was kept
};

std::size_t workspace(const Plan& plan) {
  std::size_t bytes = plan.scratchpad;
  for (const Operand* operand : {&plan.x, &plan.w, &plan.y})
    if (operand->reorder) bytes += operand->wanted.get_size();
  return bytes;
}

// Scratch of pieces: a summand, and for a weight's gradient the sum, unless it is counted in the reorder's memory.
std::size_t summands(const ConvProblem& problem, ConvPass pass, const Plan& plan) {
  if (pass == ConvPass::backward_weight) return (plan.w.reorder ? 1 : 2) * plan.w.wanted.get_size();
  const Shape result = pass == ConvPass::forward ? problem.output_shape() : problem.input_shape();
  return static_cast<std::size_t>(count_of(result)) * sizeof(float);
}

void add_floats(std::size_t count, const float* summand, float* sum) {
#pragma omp parallel for simd schedule(static) if (count > 16384)
  for (std::size_t i = 0; i < count; ++i) sum[i] += summand[i];
}

// The convolutions of one of oneDNN's algorithms, with the primitives that they need; shared by their plans.
class Convolutions {
 public:
  explicit Convolutions(dnnl::algorithm algorithm) : algorithm_(algorithm) {}
  bool supports(const ConvProblem& problem, ConvPass pass) const {
    if (!refusal(problem, pass).empty()) return false;
    for (const PlacedPiece& placed : pieces_for(problem, pass))
      if (!plan(problem, placed.piece, pass, false)) return false;
    return true;
  }
  std::string refusal(const ConvProblem& problem, ConvPass pass) const;
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const {
    const std::vector<PlacedPiece> pieces = pieces_for(problem, pass);
    std::size_t most = 0;
    for (const PlacedPiece& placed : pieces)
      if (const Plan* const found = plan(problem, placed.piece, pass, false))
        most = std::max(most, workspace(*found) + (pieces.size() > 1 ? summands(problem, pass, *found) : 0));
    return most;
  }
  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands);
  void forget() { gradient_.reset(); }

 private:
  using Key = std::tuple<ConvProblem, Piece, ConvPass, bool, int>;
  bool cuts_sums(const ConvProblem& problem) const;
  std::vector<PlacedPiece> pieces_for(const ConvProblem& problem, ConvPass pass) const;
  const Plan* plan(const ConvProblem& problem, const Piece& piece, ConvPass pass, bool biased) const;  // null: cannot
  const Plan& require_plan(const ConvProblem& problem, const Piece& piece, ConvPass pass, bool biased) const;
  dnnl::memory wrap(const Description& description, const void* bytes) const {
    return {description, engine_, const_cast<void*>(bytes)};
  }
  void sum_pieces(Stream& stream, const ConvProblem& problem, const std::vector<PlacedPiece>& pieces,
                  const ConvOperands& operands, float* w);
  void add_parts(Stream& stream, const ConvProblem& problem, ConvPass pass, const std::vector<PlacedPiece>& parts,
                 ConvOperands& operands);
  void execute(const Plan& plan, Stream& stream, ConvPass pass, const Places& places);
  dnnl::memory input(Stream& stream, const Operand& operand, const float* values, std::shared_ptr<void>& holder);

  dnnl::algorithm algorithm_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  mutable std::map<Key, std::unique_ptr<Plan>> plans_;

  // The gradient in the layout that the first backward pass reordered it to, for the second one.
  struct Reordered {
    Version version;
    Description layout;
    std::shared_ptr<void> bytes;
  };
  std::optional<Reordered> gradient_;
};

// With groups or huge kernels, some sums are too long and cannot be split.
std::string Convolutions::refusal(const ConvProblem& problem, ConvPass pass) const {
  if (!cuts_sums(problem) || pass == ConvPass::backward_weight) return {};
  const ConvProblem part = pieces_for(problem, pass).front().piece.problem;
  const std::int64_t planes = (pass == ConvPass::forward ? part.channels : part.filters) / part.groups;
  const std::int64_t terms = planes * part.kernel_h * part.kernel_w;
  if (terms <= longest_over_planes) return {};
  return join("oneDNN would sum ", terms, " terms in a row, and beyond ", longest_over_planes,
              " fp32's precision is not kept");
}

// Winograd sums few terms, and gives up some of the precision for other reasons.
bool Convolutions::cuts_sums(const ConvProblem& problem) const {
  return problem.precision == Precision::fp32 && algorithm_ == dnnl::algorithm::convolution_direct;
}

std::vector<PlacedPiece> Convolutions::pieces_for(const ConvProblem& problem, ConvPass pass) const {
  if (!cuts_sums(problem)) return {{whole(problem)}};
  return pass == ConvPass::backward_weight ? pieces_of(problem, longest_over_places)
                                           : parts_of_sum(problem, pass, longest_over_planes);
}

const Plan* Convolutions::plan(const ConvProblem& problem, const Piece& piece, ConvPass pass, bool biased) const {
  const Key key{problem, piece, pass, biased, omp_get_max_threads()};  // oneDNN plans for a number of threads
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second.get();
  auto made = onednn::make_plan(engine_, algorithm_, problem, piece, pass, biased);
  return plans_.emplace(key, std::move(made)).first->second.get();
}

const Plan& Convolutions::require_plan(const ConvProblem& problem, const Piece& piece, ConvPass pass,
                                       bool biased) const {
  const Plan* const found = plan(problem, piece, pass, biased);
  require(found != nullptr, "oneDNN has no such convolution for ", to_string(pass), " of ", to_string(problem));
  return *found;
}

void Convolutions::run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) try {
  auto& [x, w, y, bias, relu, mask] = operands;
  const bool forward = pass == ConvPass::forward, input_gradient = pass == ConvPass::backward_input;
  const bool biased = forward && bias.defined();
  const std::vector<PlacedPiece> pieces = pieces_for(problem, pass);
  if (pieces.size() != 1 && pass == ConvPass::backward_weight)
    return sum_pieces(*ctx.stream, problem, pieces, operands, w.write());
  if (pieces.size() != 1) return add_parts(*ctx.stream, problem, pass, pieces, operands);
  const PlacedPiece& only = pieces[0];
  Places places{(input_gradient ? x.write() : x.read()) + only.x,
                pass == ConvPass::backward_weight ? w.write() : w.read(),
                (forward ? y.write() : y.read()) + only.y,
                biased ? bias.read() : nullptr,
                nullptr,
                {}};
  if (!forward) places.gradient = y.version();
  execute(require_plan(problem, only.piece, pass, biased), *ctx.stream, pass, places);
  if (forward && relu) relu_in_place(*ctx.stream, y);
} catch (const dnnl::error& error) {
  throw Error(join("oneDNN failed in ", to_string(pass), " of ", to_string(problem), ": ", error.what()));
}

// The sum is taken in the layout of the primitive's result, which costs less than a reorder of every summand.
void Convolutions::sum_pieces(Stream& stream, const ConvProblem& problem, const std::vector<PlacedPiece>& pieces,
                              const ConvOperands& operands, float* w) {
  const Plan* first = nullptr;  // of those in the sum
  std::shared_ptr<void> sum;
  bool written = false;
  const auto write_sum = [&] {
    const dnnl::primitive& back = written ? first->add : first->w.reorder;
    const std::size_t bytes = first->w.wanted.get_size();
    if (back)
      back.execute(stream_,
                   {{DNNL_ARG_FROM, wrap(first->w.wanted, sum.get())}, {DNNL_ARG_TO, wrap(first->w.plain, w)}});
    else
      stream.copy(w, sum.get(), bytes);
    stream_.wait();
    written = true;
  };
  for (const auto& [piece, x, y, unmoved] : pieces) {
    const Plan& plan = require_plan(problem, piece, ConvPass::backward_weight, false);
    if (first && plan.w.wanted != first->w.wanted) write_sum(), first = nullptr;
    const std::shared_ptr<void> result = stream.allocate(plan.w.wanted.get_size());
    execute(plan, stream, ConvPass::backward_weight,
            {operands.x.read() + x, w, operands.y.read() + y, nullptr, result.get(), {}});
    if (first)
      add_floats(plan.w.wanted.get_size() / sizeof(float), static_cast<const float*>(result.get()),
                 static_cast<float*>(sum.get()));
    else
      first = &plan, sum = result;
  }
  if (first)
    write_sum();
  else
    stream.fill(w, count_of(problem.weight_shape()), 0);
}

// The first part goes where the result does, the others are added to it.
void Convolutions::add_parts(Stream& stream, const ConvProblem& problem, ConvPass pass,
                             const std::vector<PlacedPiece>& parts, ConvOperands& operands) {
  const bool forward = pass == ConvPass::forward;
  Tensor& result = forward ? operands.y : operands.x;
  float* const sum = result.write();
  std::shared_ptr<void> summand;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [piece, x, y, w] = parts[i];
    const bool first = i == 0;
    if (!first && !summand) summand = stream.allocate(result.bytes());
    float* const target = first ? sum : static_cast<float*>(summand.get());
    const bool biased = first && forward && operands.bias.defined();
    execute(require_plan(problem, piece, pass, biased), stream, pass,
            {forward ? operands.x.read() + x : target,
             operands.w.read() + w,
             forward ? target : operands.y.read() + y,
             biased ? operands.bias.read() : nullptr,
             nullptr,
             {}});
    if (!first) add_floats(static_cast<std::size_t>(result.size()), target, sum);
  }
  if (forward && operands.relu) relu_in_place(stream, operands.y);
}

void Convolutions::execute(const Plan& plan, Stream& stream, ConvPass pass, const Places& places) {
  if (!places.gradient || !gradient_ || gradient_->version != *places.gradient) gradient_.reset();
  std::array<std::shared_ptr<void>, 3> holders;
  const std::array<std::pair<const Operand*, const float*>, 3> sides{
      {{&plan.x, places.x}, {&plan.w, places.w}, {&plan.y, places.y}}};
  const std::size_t written = pass == ConvPass::forward ? 2 : pass == ConvPass::backward_input ? 0 : 1;

  std::unordered_map<int, dnnl::memory> arguments;
  dnnl::memory plain_result, result;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto& [operand, values] = sides[i];
    if (i != written) {
      arguments[operand->argument] = input(stream, *operand, values, holders[i]);
      continue;
    }
    plain_result = result = wrap(operand->plain, values);
    if (places.result) {
      result = wrap(operand->wanted, places.result);
    } else if (operand->reorder) {
      holders[i] = stream.allocate(operand->wanted.get_size());
      result = wrap(operand->wanted, holders[i].get());
    }
    arguments[operand->argument] = result;
  }
  if (places.bias) arguments[DNNL_ARG_BIAS] = wrap(plan.bias, places.bias);
  std::shared_ptr<void> scratchpad;
  if (plan.scratchpad > 0) {
    scratchpad = stream.allocate(plan.scratchpad);
    arguments[DNNL_ARG_SCRATCHPAD] =
        wrap(Description({static_cast<std::int64_t>(plan.scratchpad)}, dnnl::memory::data_type::u8, Tag::x),
             scratchpad.get());
  }

  plan.convolution.execute(stream_, arguments);
  const dnnl::primitive& back = sides[written].first->reorder;
  if (back && !places.result) back.execute(stream_, {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, plain_result}});
  stream_.wait();

  const bool both_had_it = gradient_.has_value();
  gradient_.reset();
  if (places.gradient && plan.y.reorder && !both_had_it)
    gradient_ = Reordered{*places.gradient, plan.y.wanted, holders[2]};
}

dnnl::memory Convolutions::input(Stream& stream, const Operand& operand, const float* values,
                                 std::shared_ptr<void>& holder) {
  if (!operand.reorder) return wrap(operand.plain, values);
  if (gradient_ && operand.argument == DNNL_ARG_DIFF_DST && gradient_->layout == operand.wanted) {
    holder = gradient_->bytes;
    return wrap(operand.wanted, holder.get());
  }
  holder = stream.allocate(operand.wanted.get_size());
  const dnnl::memory memory = wrap(operand.wanted, holder.get());
  operand.reorder.execute(stream_, {{DNNL_ARG_FROM, wrap(operand.plain, values)}, {DNNL_ARG_TO, memory}});
  return memory;
}

std::shared_ptr<const ConvPlan> make_plan(const char* name, const std::shared_ptr<Convolutions>& convolutions,
                                          const ConvProblem& problem, ConvPass pass) {
  return plan_of(
      {.engine = "onednn", .name = name, .scratch_bytes = convolutions->workspace_bytes(problem, pass), .vendor = true},
      [convolutions, problem, pass](Context& ctx, ConvOperands& operands) {
        convolutions->run(ctx, problem, pass, operands);
      });
}

// Direct first: Winograd gives up some of the precision.
class OnednnEngine final : public ConvEngine {
 public:
  std::string_view name() const override { return "onednn"; }
  bool pays(const ConvProblem& problem) const override { return onednn_pays(problem); }
  // ONEDNN_MAX_CPU_ISA can exclude instruction sets that the processor has.
  std::string library() const override {
    return join(cpu_gemm_library(), " isa ", static_cast<int>(dnnl::get_effective_cpu_isa()));
  }
  std::string refusal(const ConvProblem& problem, ConvPass pass) const override {
    return direct_->refusal(problem, pass);
  }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    ConvPlans found;
    if (direct_->supports(problem, pass)) found.push_back(make_plan("direct", direct_, problem, pass));
    if (found.size() < most && winograd_->supports(problem, pass))
      found.push_back(make_plan("winograd", winograd_, problem, pass));
    return found;
  }
  void forget() override { direct_->forget(), winograd_->forget(); }

 private:
  std::shared_ptr<Convolutions> direct_ = std::make_shared<Convolutions>(dnnl::algorithm::convolution_direct);
  std::shared_ptr<Convolutions> winograd_ = std::make_shared<Convolutions>(dnnl::algorithm::convolution_winograd);
};

}  // namespace

std::unique_ptr<ConvEngine> make_onednn_engine() {
  return std::make_unique<OnednnEngine>();
}

}  // namespace twiddle
