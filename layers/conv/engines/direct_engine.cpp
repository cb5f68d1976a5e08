#include "layers/conv/engines/engines.h"

#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

void sum_directly(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  require(stream.device().kind == Device::Kind::cpu, "the engine 'direct' runs on the CPU only");
  const float* const bias = read_if_defined(operands.bias);
  const auto [x, w, y, result] = arrays_of(pass, operands);
  const std::int64_t count = result_of(pass, operands).size();
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t index = 0; index < count; ++index)
    result[index] = static_cast<float>(conv_reference(problem, pass, x, w, y, bias, index));
  if (pass == ConvPass::forward && operands.relu) relu_in_place(stream, operands.y);
}

class DirectEngine final : public ConvEngine {
 public:
  std::string_view name() const override { return "direct"; }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t) const override {
    return {plan_of({.engine = "direct", .exact = true}, [problem, pass](Context& ctx, ConvOperands& operands) {
      sum_directly(*ctx.stream, problem, pass, operands);
    })};
  }
};

}  // namespace

std::unique_ptr<ConvEngine> make_direct_engine() {
  return std::make_unique<DirectEngine>();
}

}  // namespace twiddle
