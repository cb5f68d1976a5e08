#include "layers/conv/onednn_engine.h"

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

#include "framework/error.h"
#include "layers/conv/epilogue.h"
#include "layers/conv/onednn_plan.h"
#include "layers/conv/pieces.h"

namespace twiddle {

namespace {

using Description = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using onednn::Operand, onednn::Plan;

// oneDNN sums a weight's gradient one by one in float, which loses 1.9e-8 times the root of their number (measured):
// beyond this many, fp32's promise is near. Longer sums are taken piece by piece.
constexpr std::int64_t longest_sum = 9216;

// Where the plain tensors of a run lie.
struct Places {
  const float *x, *w, *y, *bias;
  void* result;                     // where it goes in the primitive's own layout; null: into the written tensor
  std::optional<Version> gradient;  // of y, where it may be kept or was kept
};

std::size_t workspace(const Plan& plan, bool of_pieces) {
  std::size_t bytes = plan.scratchpad;
  for (const Operand* operand : {&plan.x, &plan.w, &plan.y})
    if (operand->reorder) bytes += operand->wanted.get_size();
  if (of_pieces) bytes += (plan.w.reorder ? 1 : 2) * plan.w.wanted.get_size();  // their sum, and a summand
  return bytes;
}

void add_floats(std::size_t count, const float* summand, float* sum) {
#pragma omp parallel for simd schedule(static) if (count > 16384)
  for (std::size_t i = 0; i < count; ++i) sum[i] += summand[i];
}

class OnednnEngine : public ConvEngine {
 public:
  OnednnEngine(std::string name, dnnl::algorithm algorithm) : name_(std::move(name)), algorithm_(algorithm) {}
  std::string_view name() const override { return name_; }
  bool supports(const ConvProblem& problem, ConvPass pass) const override {
    for (const PlacedPiece& placed : pieces_for(problem, pass))
      if (!plan(problem, placed.piece, pass, false)) return false;
    return true;
  }
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override {
    const std::vector<PlacedPiece> pieces = pieces_for(problem, pass);
    std::size_t most = 0;
    for (const PlacedPiece& placed : pieces)
      if (const Plan* const found = plan(problem, placed.piece, pass, false))
        most = std::max(most, workspace(*found, pieces.size() > 1));
    return most;
  }
  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) override;

 private:
  using Key = std::tuple<ConvProblem, Piece, ConvPass, bool, int>;
  std::vector<PlacedPiece> pieces_for(const ConvProblem& problem, ConvPass pass) const;
  const Plan* plan(const ConvProblem& problem, const Piece& piece, ConvPass pass, bool biased) const;  // null: cannot
  const Plan& require_plan(const ConvProblem& problem, const Piece& piece, ConvPass pass, bool biased) const;
  dnnl::memory wrap(const Description& description, const void* bytes) const {
    return {description, engine_, const_cast<void*>(bytes)};
  }
  void sum_pieces(Stream& stream, const ConvProblem& problem, const std::vector<PlacedPiece>& pieces,
                  const ConvOperands& operands, float* w);
  void execute(const Plan& plan, Stream& stream, ConvPass pass, const Places& places);
  dnnl::memory input(Stream& stream, const Operand& operand, const float* values, std::shared_ptr<void>& holder);

  std::string name_;
  dnnl::algorithm algorithm_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  mutable std::map<Key, std::unique_ptr<Plan>> plans_;

  // The gradient that backward_weight put into another layout, for a backward_input right behind it.
  struct Reordered {
    Version version;
    Description layout;
    std::shared_ptr<void> bytes;
  };
  std::optional<Reordered> gradient_;
};

std::vector<PlacedPiece> OnednnEngine::pieces_for(const ConvProblem& problem, ConvPass pass) const {
  const bool may_sum_long = pass == ConvPass::backward_weight && problem.precision == Precision::fp32 &&
                            algorithm_ == dnnl::algorithm::convolution_direct;
  if (may_sum_long) return pieces_of(problem, longest_sum);
  return {{whole(problem), 0, 0}};
}

const Plan* OnednnEngine::plan(const ConvProblem& problem, const Piece& piece, ConvPass pass, bool biased) const {
  const Key key{problem, piece, pass, biased, omp_get_max_threads()};  // oneDNN plans for a number of threads
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second.get();
  auto made = onednn::make_plan(engine_, algorithm_, problem, piece, pass, biased);
  return plans_.emplace(key, std::move(made)).first->second.get();
}

const Plan& OnednnEngine::require_plan(const ConvProblem& problem, const Piece& piece, ConvPass pass,
                                       bool biased) const {
  const Plan* const found = plan(problem, piece, pass, biased);
  require(found != nullptr, "oneDNN has no ", name_, " for ", to_string(pass), " of ", to_string(problem));
  return *found;
}

void OnednnEngine::run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) try {
  auto& [x, w, y, bias, relu, mask] = operands;
  const bool forward = pass == ConvPass::forward, input_gradient = pass == ConvPass::backward_input;
  const bool biased = forward && bias.defined();
  const std::vector<PlacedPiece> pieces = pieces_for(problem, pass);
  if (pieces.size() != 1) return sum_pieces(*ctx.stream, problem, pieces, operands, w.write());
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
void OnednnEngine::sum_pieces(Stream& stream, const ConvProblem& problem, const std::vector<PlacedPiece>& pieces,
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
  for (const auto& [piece, x, y] : pieces) {
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

void OnednnEngine::execute(const Plan& plan, Stream& stream, ConvPass pass, const Places& places) {
  // Only the very next pass may take it; backward_weight does not, so that timing it again and again times all of it.
  if (pass != ConvPass::backward_input || !places.gradient || !gradient_ || gradient_->version != *places.gradient)
    gradient_.reset();
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

  gradient_.reset();
  if (pass == ConvPass::backward_weight && places.gradient && plan.y.reorder)
    gradient_ = Reordered{*places.gradient, plan.y.wanted, holders[2]};
}

dnnl::memory OnednnEngine::input(Stream& stream, const Operand& operand, const float* values,
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

}  // namespace

std::unique_ptr<ConvEngine> make_onednn_engine() {
  return std::make_unique<OnednnEngine>("onednn", dnnl::algorithm::convolution_direct);
}

std::unique_ptr<ConvEngine> make_onednn_winograd_engine() {
  return std::make_unique<OnednnEngine>("onednn:winograd", dnnl::algorithm::convolution_winograd);
}

}  // namespace twiddle
