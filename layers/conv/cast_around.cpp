#include "layers/conv/cast_around.h"

#include <utility>

#include "framework/context.h"
#include "framework/tensor_ops.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

class CastAround final : public ConvPlan {
 public:
  CastAround(std::shared_ptr<const ConvPlan> plan, ConvPass pass)
      : ConvPlan(plan->facts()), plan_(std::move(plan)), pass_(pass) {}

  void run(Context& ctx, ConvOperands& operands) const override {
    Stream& stream = *ctx.stream;
    Tensor& result = result_of(pass_, operands);
    ConvOperands wide = operands;
    Tensor& wide_result = result_of(pass_, wide);
    for (Tensor* const each : {&wide.x, &wide.w, &wide.y, &wide.mask})
      if (each != &wide_result) *each = cast(stream, *each, DType::f32);
    const bool rounds = result.type() != DType::f32;
    if (rounds) wide_result = Tensor(stream, result.shape());
    plan_->run(ctx, wide);
    if (rounds) cast_into(stream, wide_result, result);
  }

 private:
  std::shared_ptr<const ConvPlan> plan_;
  ConvPass pass_;
};

}  // namespace

std::shared_ptr<const ConvPlan> cast_around(std::shared_ptr<const ConvPlan> plan, ConvPass pass) {
  return std::make_shared<CastAround>(std::move(plan), pass);
}

}  // namespace twiddle
