#include "layers/conv/onednn_engine.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "framework/context.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/engines.h"

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
  void expect_weight_gradient(const ConvProblem& problem, int samples = 300) {
    SCOPED_TRACE(to_string(problem));
    ASSERT_TRUE(engine_->supports(problem, ConvPass::backward_weight));
    Context ctx;  // whose pool holds no larger blocks
    ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::backward_weight);
    const std::size_t before = ctx.stream->memory().in_use;
    ctx.stream->reset_peak();
    engine_->run(ctx, problem, ConvPass::backward_weight, operands);
    const std::size_t rounding = std::size_t(5) << 16;  // the pool's, of at most five blocks
    EXPECT_LE(ctx.stream->memory().peak - before,
              engine_->workspace_bytes(problem, ConvPass::backward_weight) + rounding);
    EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_weight, operands, samples), promise(problem.precision));
  }
  std::unique_ptr<ConvEngine> engine_ = make_onednn_engine();

 private:
  int threads_ = omp_get_max_threads();
};

ConvProblem square(int batch, int channels, int size, int filters, int kernel, int stride, int pad) {
  return {.batch = batch,
          .channels = channels,
          .height = size,
          .width = size,
          .filters = filters,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

}  // namespace

TEST_F(OnednnEngine, LongSumsOverTheBatchKeepThePrecision) {
  expect_weight_gradient(square(64, 1, 28, 20, 5, 1, 0));  // lenet's first: 36,864 terms
  expect_weight_gradient(square(41, 3, 32, 16, 3, 1, 1));  // an odd batch
  expect_weight_gradient(square(64, 32, 16, 32, 3, 1, 1));
}

TEST_F(OnednnEngine, LongSumsWithinAnImageKeepThePrecision) {
  expect_weight_gradient(square(1, 3, 224, 16, 3, 1, 1));  // VGG's first: 50,176 terms
  expect_weight_gradient(square(2, 3, 221, 16, 7, 2, 0));  // OverFeat accurate's
  expect_weight_gradient(square(1, 16, 112, 16, 3, 1, 1));
  expect_weight_gradient(square(1, 5, 120, 7, 3, 1, 2));
}

TEST_F(OnednnEngine, LongSumsOfAwkwardShapesKeepThePrecision) {
  ConvProblem dilated = square(2, 4, 200, 6, 3, 1, 5);
  dilated.dilation = 3, dilated.groups = 2;
  expect_weight_gradient(dilated);
  ConvProblem wide{.batch = 2, .channels = 2, .height = 3, .width = 30000, .filters = 3, .kernel_h = 2, .kernel_w = 9};
  wide.stride_w = 2, wide.pad_w = 4;
  expect_weight_gradient(wide);
  ConvProblem tall{.channels = 2, .height = 40001, .width = 1, .filters = 3, .kernel_h = 5, .pad_h = 7};
  expect_weight_gradient(tall);
}

TEST_F(OnednnEngine, OneRectangleMayBeAllThatSeesTheInput) {
  expect_weight_gradient(square(1, 2, 1, 3, 1, 1, 100));  // 201x201 outputs, one of them inside
}

TEST_F(OnednnEngine, AGradientThatSeesPaddingAloneIsZero) {
  // Windows of one element, 200 apart, all beside the one input.
  ConvProblem unseen{.channels = 2, .height = 1, .width = 1, .filters = 3, .stride_h = 200, .stride_w = 200};
  unseen.pad_h = unseen.pad_w = 10100;
  ASSERT_TRUE(engine_->supports(unseen, ConvPass::backward_weight));
  Context ctx;
  ConvOperands operands = random_operands(*ctx.stream, unseen, ConvPass::backward_weight);
  engine_->run(ctx, unseen, ConvPass::backward_weight, operands);
  EXPECT_EQ(operands.w.to_vector(*ctx.stream), std::vector<float>(6, 0.0f));
}

}  // namespace twiddle
