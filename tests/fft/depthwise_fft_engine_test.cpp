#include "fft/depthwise_fft_engine.h"

#include "tests/support/conv_problem.h"
#include "tests/support/depthwise_check.h"
#include "tests/support/depthwise_problem.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

// Null on a CPU and in a build without CUDA.
std::unique_ptr<ConvEngine> engine_on(Device device) {
  return device.kind == Device::Kind::cuda ? make_depthwise_fft_engine(device) : nullptr;
}

// A plane of `size`, three images, two channels, and a kernel as large as its plane allows.
ConvProblem problem_of_size(int size) {
  const int kernel = size / 2 | 1, pad = kernel / 2, plane = size - pad;
  ConvProblem p{.batch = 3, .channels = 2, .height = plane, .width = plane - 1, .filters = 2, .kernel_h = kernel};
  p.kernel_w = kernel, p.pad_h = p.pad_w = pad, p.groups = 2;
  return p;
}

}  // namespace

TEST_P(EveryDevice, DepthwiseFftAgreesWithTheReferenceOnRandomProblems) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  int runs = 0;
  for (int number = 0; number < random_depthwise_problems(); ++number) {
    const ConvProblem problem = random_depthwise_problem(number, 61, 1, 1);
    for (const ConvPass pass : every_pass)
      for (const auto& plan : engine->plans(problem, pass)) {
        SCOPED_TRACE(full_name(*plan));
        expect_depthwise_pass(ctx, problem, pass, false, [&](ConvOperands& operands) { plan->run(ctx, operands); });
        ++runs;
      }
  }
  EXPECT_GT(runs, random_depthwise_problems());
}

TEST_P(EveryDevice, DepthwiseFftAgreesWithTheReferenceInEverySize) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  Context ctx(GetParam());
  for (int size = 2; size <= 96; ++size) {
    const ConvProblem problem = problem_of_size(size);
    for (const ConvPass pass : every_pass) {
      const auto plan = first_plan(*engine, problem, pass);
      SCOPED_TRACE(full_name(*plan));
      expect_depthwise_pass(ctx, problem, pass, false, [&](ConvOperands& operands) { plan->run(ctx, operands); });
    }
  }
}

TEST_P(EveryDevice, DepthwiseFftLeavesOtherProblemsToOthers) {
  const auto engine = engine_on(GetParam());
  if (engine == nullptr) GTEST_SKIP() << "runs on a GPU alone";
  for (const ConvProblem& problem :
       conv_problems({"2x4x8x8 * 4x4x3x3 pad 1", "2x4x8x8 * 4x2x3x3 pad 1 groups 2", "2x4x8x8 * 8x1x3x3 groups 4",
                      "2x4x9x9 * 4x1x3x3 stride 2 pad 1 groups 4", "2x4x90x9 * 4x1x21x21 pad 10 groups 4"}))
    for (const ConvPass pass : every_pass) EXPECT_FALSE(engine->supports(problem, pass)) << to_string(problem);
}

}  // namespace twiddle
