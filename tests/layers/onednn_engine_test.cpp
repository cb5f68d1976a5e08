#include "layers/conv/engines/engines.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "framework/context.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"

namespace twiddle {

namespace {

// A single thread sums the most terms and has the largest error.
class OnednnEngine : public testing::Test {
 protected:
  void SetUp() override {
    if (!engine_) GTEST_SKIP() << "built without oneDNN";
    omp_set_num_threads(1);
  }
  void TearDown() override { omp_set_num_threads(threads_); }
  void expect_weight_gradient(const char* text) { expect_precision(text, ConvPass::backward_weight); }
  void expect_precision(const char* text, ConvPass pass) {
    SCOPED_TRACE(text);
    const ConvProblem problem = conv_problem(text);
    ASSERT_TRUE(engine_->supports(problem, pass));
    Context ctx;  // whose pool holds no larger blocks
    ConvOperands operands = random_operands(*ctx.stream, problem, pass);
    if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx.stream, {problem.filters}, 0.25f);
    const std::size_t before = ctx.stream->memory().in_use;
    ctx.stream->reset_peak();
    run(*engine_, ctx, problem, pass, operands);
    const std::size_t rounding = std::size_t(5) << 16;  // the pool's, of at most five blocks
    EXPECT_LE(ctx.stream->memory().peak - before, scratch_bytes(*engine_, problem, pass) + rounding);
    EXPECT_LE(conv_error(ctx, problem, pass, operands, 300), promise(problem.precision));
  }
  std::unique_ptr<ConvEngine> engine_ = make_onednn_engine();

 private:
  int threads_ = omp_get_max_threads();
};

}  // namespace

TEST_F(OnednnEngine, MeetsErrorLimitForLargeBatches) {
  expect_weight_gradient("64x1x28x28 * 20x1x5x5");        // lenet's first: 36,864 terms
  expect_weight_gradient("41x3x32x32 * 16x3x3x3 pad 1");  // an odd batch
  expect_weight_gradient("64x32x16x16 * 32x32x3x3 pad 1");
}

TEST_F(OnednnEngine, MeetsErrorLimitForLargeImages) {
  expect_weight_gradient("1x3x224x224 * 16x3x3x3 pad 1");     // VGG's first: 50,176 terms
  expect_weight_gradient("2x3x221x221 * 16x3x7x7 stride 2");  // OverFeat accurate's
  expect_weight_gradient("1x16x112x112 * 16x16x3x3 pad 1");
  expect_weight_gradient("1x5x120x120 * 7x5x3x3 pad 2");
}

TEST_F(OnednnEngine, MeetsErrorLimitForAwkwardShapes) {
  expect_weight_gradient("2x4x200x200 * 6x2x3x3 pad 5 dilation 3 groups 2");
  expect_weight_gradient("2x2x3x30000 * 3x2x2x9 stride 1x2 pad 0x4");
  expect_weight_gradient("1x2x40001x1 * 3x2x5x1 pad 7x0");
}

TEST_F(OnednnEngine, MeetsErrorLimitForManyChannels) {
  expect_precision("2x1024x6x6 * 16x1024x6x6", ConvPass::forward);  // 36,864 terms
  expect_precision("1x256x31x31 * 3x256x31x31", ConvPass::forward);
  expect_precision("2x2050x8x8 * 5x2050x3x3 pad 1", ConvPass::forward);
}

TEST_F(OnednnEngine, RejectsSumsThatCannotBeSplit) {
  for (const char* text : {"2x3x120x120 * 2x3x100x100", "2x4096x8x8 * 4x2048x3x3 groups 2"}) {
    const ConvProblem problem = conv_problem(text);
    EXPECT_FALSE(engine_->supports(problem, ConvPass::forward)) << text;
    EXPECT_NE(engine_->refusal(problem, ConvPass::forward).find("terms"), std::string::npos) << text;
    EXPECT_TRUE(engine_->supports(problem, ConvPass::backward_weight)) << text;
    ConvProblem coarse = problem;
    coarse.precision = Precision::tf32;
    EXPECT_TRUE(engine_->supports(coarse, ConvPass::forward)) << text;
  }
}

TEST_F(OnednnEngine, MeetsErrorLimitForManyFilters) {
  expect_precision("2x16x10x10 * 1025x16x6x6", ConvPass::backward_input);
  expect_precision("2x5x8x8 * 2050x5x3x3 pad 1", ConvPass::backward_input);
}

// The backward passes run one after the other on the same gradient: results do not depend on their order.
TEST_F(OnednnEngine, PassesRunInAnyOrder) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x16x9x9 * 32x16x3x3 pad 1");
  const ConvOperands made = random_operands(*ctx.stream, problem, ConvPass::backward_weight);
  const Tensor w = random_operands(*ctx.stream, problem, ConvPass::forward).w;
  std::vector<std::vector<float>> results;
  for (const bool weight_first : {true, false}) {
    ConvOperands of_weight{made.x, Tensor(*ctx.stream, problem.weight_shape()), made.y};
    ConvOperands of_input{Tensor(*ctx.stream, problem.input_shape()), w, made.y};
    for (const bool weight : {weight_first, !weight_first, weight_first})
      run(*engine_, ctx, problem, weight ? ConvPass::backward_weight : ConvPass::backward_input,
          weight ? of_weight : of_input);
    results.push_back(of_weight.w.to_vector(*ctx.stream));
    results.push_back(of_input.x.to_vector(*ctx.stream));
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
  // A new gradient in the same memory must be recognized.
  Tensor gradient = made.y;
  ctx.stream->fill(gradient.write(), gradient.size(), 1);
  ConvOperands again{made.x, Tensor(*ctx.stream, problem.weight_shape()), gradient};
  run(*engine_, ctx, problem, ConvPass::backward_weight, again);
  EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_weight, again, 300), promise(problem.precision));
}

TEST_F(OnednnEngine, HandlesSingleOutputThatReadsInput) {
  expect_weight_gradient("1x2x1x1 * 3x2x1x1 pad 100");  // 201x201 outputs, one of them inside
}

TEST_F(OnednnEngine, GradientOfPaddingIsZero) {
  // Windows of one element, 200 apart, all next to the single input.
  const ConvProblem unseen = conv_problem("1x2x1x1 * 3x2x1x1 stride 200 pad 10100");
  ASSERT_TRUE(engine_->supports(unseen, ConvPass::backward_weight));
  Context ctx;
  ConvOperands operands = random_operands(*ctx.stream, unseen, ConvPass::backward_weight);
  run(*engine_, ctx, unseen, ConvPass::backward_weight, operands);
  EXPECT_EQ(operands.w.to_vector(*ctx.stream), std::vector<float>(6, 0.0f));
}

}  // namespace twiddle
