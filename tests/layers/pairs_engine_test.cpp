#include "framework/context.h"
#include "layers/conv/engines/engines.h"

#include <limits>

#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_device.h"

namespace twiddle {

TEST_P(EveryDevice, PairsMatchReferenceInEveryPass) {
  const auto engine = make_pairs_engine(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "no tensor cores";
  Context ctx(GetParam());
  for (const ConvProblem& problem :
       conv_problems({"3x40x9x10 * 70x40x1x1", "2x64x16x16 * 32x64x1x1", "5x130x7x7 * 140x130x1x1", "1x3x5x5 * 2x3x1x1",
                      "2x300x12x12 * 64x300x1x1", "1x16x1x1 * 16x16x1x1", "2x300x7x7 * 1040x300x1x1"}))
    for (const ConvPass pass : every_pass) {
      EXPECT_TRUE(engine->supports(problem, pass)) << to_string(problem);
      for (const auto& plan : engine->plans(problem, pass)) {
        ConvOperands operands = random_operands(*ctx.stream, problem, pass);
        Tensor& result = pass == ConvPass::forward          ? operands.y
                         : pass == ConvPass::backward_input ? operands.x
                                                            : operands.w;
        ctx.stream->fill(result.write(), result.size(), std::numeric_limits<float>::quiet_NaN());
        plan->run(ctx, operands);
        const double allowed = (result.size() < 200 ? 3 : 1) * promise(Precision::fp32);  // terms may nearly cancel
        EXPECT_LE(conv_error(ctx, problem, pass, operands, std::numeric_limits<int>::max()), allowed)
            << full_name(*plan) << ", " << to_string(problem) << ", " << to_string(pass);
      }
    }
}

TEST(PairsEngine, RejectsOtherThanMatrixProducts) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  const auto engine = make_pairs_engine({Device::Kind::cuda, 0});
  if (engine == nullptr) GTEST_SKIP() << "no tensor cores";
  for (const ConvProblem& problem : conv_problems({"2x8x9x9 * 8x8x3x3 pad 1", "2x8x9x9 * 8x8x1x1 stride 2",
                                                   "2x8x9x9 * 8x4x1x1 groups 2", "2x8x9x9 * 8x8x1x1 pad 1"}))
    EXPECT_FALSE(engine->supports(problem, ConvPass::forward)) << to_string(problem);
}

}  // namespace twiddle
