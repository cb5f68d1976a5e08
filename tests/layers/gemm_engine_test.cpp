#include "framework/context.h"
#include "layers/conv/engines/engines.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>

#include "framework/error.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"
#include "tests/support/forwarding_stream.h"

namespace twiddle {

namespace {

// Counts the products that a single thread computes while others compute theirs, and those that all threads compute
// together.
class CountingStream final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  void gemm(const Gemm& shape, const float* a, const float* b, float* c) override {
    ++(omp_in_parallel() ? by_one_thread : together);
    ForwardingStream::gemm(shape, a, b, c);
  }
  std::atomic<int> by_one_thread = 0, together = 0;
};

class FailingStream final : public ForwardingStream {
 public:
  using ForwardingStream::ForwardingStream;
  void gemm(const Gemm&, const float*, const float*, float*) override {
    throw OutOfMemory("not enough memory for a product");
  }
};

class GemmEngine : public testing::Test {
 protected:
  void SetUp() override { omp_set_num_threads(2); }
  void TearDown() override { omp_set_num_threads(threads_); }

  // Runs the pass and checks its error limit.
  void run_pass(const ConvProblem& problem, ConvPass pass) {
    SCOPED_TRACE(to_string(problem) + " " + std::string(to_string(pass)));
    products_.by_one_thread = products_.together = 0;
    const auto plan = first_plan(*make_gemm_engine(), problem, pass);
    ConvOperands operands = random_operands(*ctx_.stream, problem, pass);
    plan->run(ctx_, operands);
    EXPECT_LE(conv_error(ctx_, problem, pass, operands, 1000), promise(Precision::fp32));
  }

  const int threads_ = omp_get_max_threads();
  Context ctx_;
  CountingStream& products_ = count_products(ctx_);

 private:
  static CountingStream& count_products(Context& ctx) {
    auto counting = std::make_unique<CountingStream>(std::move(ctx.stream));
    CountingStream& stream = *counting;
    ctx.stream = std::move(counting);
    return stream;
  }
};

}  // namespace

TEST_F(GemmEngine, DistributesWholeImagesAcrossThreads) {
  for (const ConvProblem& problem : conv_problems({"16x6x9x8 * 10x6x1x1", "19x6x9x8 * 10x3x1x1 groups 2"}))
    for (const ConvPass pass : every_pass) {
      run_pass(problem, pass);
      EXPECT_EQ(products_.by_one_thread, problem.batch * problem.groups);
      EXPECT_EQ(products_.together, 0);
    }
}

TEST_F(GemmEngine, SplitsProductsOfFewImages) {
  for (const ConvProblem& problem :
       conv_problems({"3x6x9x8 * 10x6x1x1", "16x6x9x8 * 10x6x3x3", "16x6x9x8 * 4x6x1x1 stride 2"}))
    for (const ConvPass pass : every_pass) {
      run_pass(problem, pass);
      EXPECT_EQ(products_.together, problem.batch);
      EXPECT_EQ(products_.by_one_thread, 0);
    }
}

TEST_F(GemmEngine, PartialSumsFitIntoOperandSize) {
  const ConvProblem wide = conv_problem("8x512x2x2 * 512x512x1x1");
  run_pass(wide, ConvPass::backward_weight);
  EXPECT_EQ(products_.by_one_thread, 0);
  EXPECT_EQ(first_plan(*make_gemm_engine(), wide, ConvPass::backward_weight)->facts().scratch_bytes, 0u);
}

// If x were unrolled, the product of a layer with three filters would have three rows, and columns of 64 channels.
TEST_F(GemmEngine, UnrollsSideWithFewerPlanes) {
  const auto scratch_floats = [](const char* problem) {
    std::int64_t most = 0;
    for (const ConvPass pass : every_pass) {
      const auto bytes = first_plan(*make_gemm_engine(), conv_problem(problem), pass)->facts().scratch_bytes;
      most = std::max(most, static_cast<std::int64_t>(bytes / sizeof(float)));
    }
    return most;
  };
  EXPECT_EQ(scratch_floats("4x64x20x30 * 3x64x5x5 pad 2"), 3 * 25 * 20 * 30 + 3 * 64 * 25);
  EXPECT_EQ(scratch_floats("4x64x20x30 * 3x64x5x5 stride 2 pad 2"), 64 * 25 * 10 * 15) << "of strides of 1 alone";
  EXPECT_EQ(scratch_floats("4x64x20x30 * 33x64x5x5 pad 2"), 64 * 25 * 20 * 30);
  for (const ConvPass pass : every_pass) run_pass(conv_problem("3x64x20x30 * 3x64x5x5 pad 2"), pass);
}

TEST_F(GemmEngine, ReportsFailureInWorkerThread) {
  const ConvProblem problem = conv_problem("16x6x9x8 * 10x6x1x1");
  for (const ConvPass pass : every_pass) {
    ConvOperands operands = random_operands(*ctx_.stream, problem, pass);
    Context failing;
    failing.stream = std::make_unique<FailingStream>(std::move(failing.stream));
    EXPECT_THROW(first_plan(*make_gemm_engine(), problem, pass)->run(failing, operands), OutOfMemory);
  }
}

}  // namespace twiddle
