#include "layers/conv/onednn_engine.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "framework/context.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/engines.h"
#include "tests/support/conv_problem.h"

namespace twiddle {

namespace {

// One thread sums the longest, and loses the most.
class OnednnEngine : public testing::Test {
 protected:
  void SetUp() override {
    if (!engine_) GTEST_SKIP() << "built without oneDNN";
    omp_set_num_threads(1);
  }
  void TearDown() override { omp_set_num_threads(threads_); }
  void expect_weight_gradient(const char* text) {
    SCOPED_TRACE(text);
    const ConvProblem problem = conv_problem(text);
    ASSERT_TRUE(engine_->supports(problem, ConvPass::backward_weight));
    Context ctx;  // whose pool holds no larger blocks
    ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::backward_weight);
    const std::size_t before = ctx.stream->memory().in_use;
    ctx.stream->reset_peak();
    engine_->run(ctx, problem, ConvPass::backward_weight, operands);
    const std::size_t rounding = std::size_t(5) << 16;  // the pool's, of at most five blocks
    EXPECT_LE(ctx.stream->memory().peak - before,
              engine_->workspace_bytes(problem, ConvPass::backward_weight) + rounding);
    EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_weight, operands, 300), promise(problem.precision));
  }
  std::unique_ptr<ConvEngine> engine_ = make_onednn_engine();

 private:
  int threads_ = omp_get_max_threads();
};

}  // namespace

TEST_F(OnednnEngine, LongSumsOverTheBatchKeepThePrecision) {
  expect_weight_gradient("64x1x28x28 * 20x1x5x5");        // lenet's first: 36,864 terms
  expect_weight_gradient("41x3x32x32 * 16x3x3x3 pad 1");  // an odd batch
  expect_weight_gradient("64x32x16x16 * 32x32x3x3 pad 1");
}

TEST_F(OnednnEngine, LongSumsWithinAnImageKeepThePrecision) {
  expect_weight_gradient("1x3x224x224 * 16x3x3x3 pad 1");     // VGG's first: 50,176 terms
  expect_weight_gradient("2x3x221x221 * 16x3x7x7 stride 2");  // OverFeat accurate's
  expect_weight_gradient("1x16x112x112 * 16x16x3x3 pad 1");
  expect_weight_gradient("1x5x120x120 * 7x5x3x3 pad 2");
}

TEST_F(OnednnEngine, LongSumsOfAwkwardShapesKeepThePrecision) {
  expect_weight_gradient("2x4x200x200 * 6x2x3x3 pad 5 dilation 3 groups 2");
  expect_weight_gradient("2x2x3x30000 * 3x2x2x9 stride 1x2 pad 0x4");
  expect_weight_gradient("1x2x40001x1 * 3x2x5x1 pad 7x0");
}

TEST_F(OnednnEngine, OneRectangleMayBeAllThatSeesTheInput) {
  expect_weight_gradient("1x2x1x1 * 3x2x1x1 pad 100");  // 201x201 outputs, one of them inside
}

TEST_F(OnednnEngine, AGradientThatSeesPaddingAloneIsZero) {
  // Windows of one element, 200 apart, all beside the one input.
  const ConvProblem unseen = conv_problem("1x2x1x1 * 3x2x1x1 stride 200 pad 10100");
  ASSERT_TRUE(engine_->supports(unseen, ConvPass::backward_weight));
  Context ctx;
  ConvOperands operands = random_operands(*ctx.stream, unseen, ConvPass::backward_weight);
  engine_->run(ctx, unseen, ConvPass::backward_weight, operands);
  EXPECT_EQ(operands.w.to_vector(*ctx.stream), std::vector<float>(6, 0.0f));
}

}  // namespace twiddle
