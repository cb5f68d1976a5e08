#include "layers/conv/cast_around.h"

#include <utility>

#include "framework/context.h"
#include "framework/tensor_ops.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

std::size_t cast_bytes(const ConvProblem& problem, ConvPass pass, bool masks) {
  const auto bytes = [](const Shape& shape) { return static_cast<std::size_t>(count_of(shape)) * sizeof(float); };
  const std::size_t y = bytes(problem.output_shape()), x = bytes(problem.input_shape());
  return x + (masks ? 2 * y : y) + (pass == ConvPass::backward_weight ? 0 : bytes(problem.weight_shape()));
}

ConvPlan::Facts with_casts(ConvPlan::Facts facts, const ConvProblem& problem, ConvPass pass) {
  const bool masks = facts.fuses_epilogue_backward && problem.relu && pass != ConvPass::forward;
  facts.cast_bytes = cast_bytes(problem, pass, masks);
  facts.scratch_bytes += facts.cast_bytes;
  facts.kept_bytes = 0;
  facts.shares.clear();
  return facts;
}

// Runs a plan on casts of its operands to `type`.
class CastAround final : public ConvPlan {
 public:
  CastAround(Facts facts, std::shared_ptr<const ConvPlan> plan, ConvPass pass, DType type)
      : ConvPlan(std::move(facts)),
        plan_(std::move(plan)),
        pass_(pass),
        type_(type),
        type_of_result_(pass == ConvPass::backward_weight ? DType::f32 : type) {}

  void run(Context& ctx, ConvOperands& operands) const override {
    Stream& stream = *ctx.stream;
    Tensor& result = result_of(pass_, operands);
    ConvOperands inner = operands;
    Tensor& inner_result = result_of(pass_, inner);
    for (Tensor* const each : {&inner.x, &inner.w, &inner.y, &inner.mask})
      if (each != &inner_result) *each = cast(stream, *each, type_);
    const bool casts = result.type() != type_of_result_;
    if (casts) inner_result = Tensor(stream, result.shape(), type_of_result_);
    plan_->run(ctx, inner);
    if (casts) cast_into(stream, inner_result, result);
  }

 private:
  std::shared_ptr<const ConvPlan> plan_;
  ConvPass pass_;
  DType type_, type_of_result_;
};

class CastAroundEngine final : public ConvEngine {
 public:
  explicit CastAroundEngine(std::unique_ptr<ConvEngine> engine) : engine_(std::move(engine)) {}
  std::string_view name() const override { return engine_->name(); }
  std::string library() const override { return engine_->library(); }
  void forget() override { engine_->forget(); }
  void forget_gone() override { engine_->forget_gone(); }

  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    // A library may have none for 16 bits.
    if (is_native(problem, pass))
      if (ConvPlans native = engine_->plans(problem, pass, most); !native.empty() || is_f32(problem)) return native;
    ConvPlans found = engine_->plans(in_f32(problem), pass, most);
    for (auto& each : found) each = cast_around(std::move(each), problem, pass);
    return found;
  }
  std::shared_ptr<const ConvPlan> plan(const ConvProblem& problem, ConvPass pass,
                                       std::string_view name) const override {
    if (is_native(problem, pass))
      if (auto native = engine_->plan(problem, pass, name); native != nullptr || is_f32(problem)) return native;
    auto found = engine_->plan(in_f32(problem), pass, name);
    return found == nullptr ? nullptr : cast_around(std::move(found), problem, pass);
  }
  std::string refusal(const ConvProblem& problem, ConvPass pass) const override {
    return engine_->refusal(is_native(problem, pass) ? problem : in_f32(problem), pass);
  }
  bool pays(const ConvProblem& problem) const override {
    return engine_->pays(is_native(problem, ConvPass::forward) ? problem : in_f32(problem));
  }
  bool takes_16_bits(const ConvProblem&, ConvPass) const override { return true; }

 private:
  bool is_native(const ConvProblem& problem, ConvPass pass) const {
    return is_f32(problem) || engine_->takes_16_bits(problem, pass);
  }
  static bool is_f32(const ConvProblem& problem) { return storage_of(problem.precision) == DType::f32; }
  static ConvProblem in_f32(ConvProblem problem) {
    problem.precision = Precision::tf32;
    return problem;
  }

  std::unique_ptr<ConvEngine> engine_;
};

}  // namespace

std::shared_ptr<const ConvPlan> cast_around(std::shared_ptr<const ConvPlan> plan, const ConvProblem& problem,
                                            ConvPass pass) {
  ConvPlan::Facts facts = with_casts(plan->facts(), problem, pass);
  return std::make_shared<CastAround>(std::move(facts), std::move(plan), pass, DType::f32);
}

std::shared_ptr<const ConvPlan> cast_to_16_bits(std::shared_ptr<const ConvPlan> plan, const ConvProblem& problem,
                                                ConvPass pass) {
  ConvPlan::Facts facts = plan->facts();
  return std::make_shared<CastAround>(std::move(facts), std::move(plan), pass, storage_of(problem.precision));
}

std::unique_ptr<ConvEngine> cast_around(std::unique_ptr<ConvEngine> engine) {
  return std::make_unique<CastAroundEngine>(std::move(engine));
}

}  // namespace twiddle
