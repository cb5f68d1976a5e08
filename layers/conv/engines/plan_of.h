#pragma once
#include <functional>
#include <memory>
#include <utility>

#include "framework/convolution.h"

namespace twiddle {

// A plan that runs a function.
class FunctionPlan final : public ConvPlan {
 public:
  using Run = std::function<void(Context&, ConvOperands&)>;
  FunctionPlan(Facts facts, Run run) : ConvPlan(std::move(facts)), run_(std::move(run)) {}
  void run(Context& ctx, ConvOperands& operands) const override { run_(ctx, operands); }

 private:
  Run run_;
};
inline std::shared_ptr<const ConvPlan> plan_of(ConvPlan::Facts facts, FunctionPlan::Run run) {
  return std::make_shared<FunctionPlan>(std::move(facts), std::move(run));
}

}  // namespace twiddle
