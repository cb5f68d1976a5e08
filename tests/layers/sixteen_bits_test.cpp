#include "framework/tensor_ops.h"
#include "layers/conv/cast_around.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/check_layer.h"
#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

// Rounding a result to bf16 alone gives 1.7e-3.
constexpr double bf16_limit = 2.5e-3;

}  // namespace

TEST_P(EveryDevice, CastAroundMeetsErrorLimitInEveryPass) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  const ConvProblem problem = conv_problem("3x8x9x10 * 6x8x3x3 pad 1");
  for (const ConvPass pass : every_pass) {
    // Operands that bf16 holds exactly, so that only the result is rounded.
    ConvOperands exact = random_operands(stream, problem, pass), stored = exact;
    for (Tensor ConvOperands::*each : {&ConvOperands::x, &ConvOperands::w, &ConvOperands::y}) {
      stored.*each = cast(stream, exact.*each, DType::bf16);
      exact.*each = cast(stream, stored.*each, DType::f32);
    }
    if (pass == ConvPass::backward_weight) stored.w = Tensor(stream, problem.weight_shape());  // gradients are f32
    const auto plan = make_gemm_engine(GetParam())->plans(problem, pass).front();
    plan->run(ctx, exact);
    cast_around(plan, pass)->run(ctx, stored);
    Tensor ConvOperands::*const result = pass == ConvPass::forward          ? &ConvOperands::y
                                         : pass == ConvPass::backward_input ? &ConvOperands::x
                                                                            : &ConvOperands::w;
    const std::vector<float> found = cast(stream, stored.*result, DType::f32).to_vector(stream);
    const double error = relative_error(found, (exact.*result).to_vector(stream));
    if (pass == ConvPass::backward_weight) {
      EXPECT_EQ(error, 0);
    } else {
      EXPECT_GT(error, 5e-4);
      EXPECT_LT(error, bf16_limit);
    }
  }
}

}  // namespace twiddle
