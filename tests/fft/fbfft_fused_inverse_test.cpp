// The engine fbfft's products in the inverse as they run on a GPU: product_inverse_test.cpp follows their blocks on the
// CPU.
#include <gtest/gtest.h>

#include <limits>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/engines.h"
#include "tests/support/conv_problem.h"
#include "tests/support/on_gpu.h"
#include "tests/support/spectral_plan.h"

namespace twiddle {
namespace {

constexpr std::size_t plenty = std::size_t(1) << 30;

class FbfftFused : public OnGpu, public testing::WithParamInterface<int> {
 protected:
  void expect_convolution(const ConvProblem& problem, const FrequencyGrid& grid) {
    SCOPED_TRACE(join(to_string(problem), ", ", to_string(grid)));
    const auto plan = spectral_plan(backend, buffers, problem, ConvPass::forward, grid);
    ConvOperands operands = random_operands(stream(), problem, ConvPass::forward);
    operands.bias = Tensor::filled(stream(), {problem.filters}, 0.5f);
    operands.y = poisoned(problem.output_shape());
    plan->run(*ctx, operands);
    EXPECT_LE(conv_error(*ctx, problem, ConvPass::forward, operands, all), promise(Precision::fp32));
  }

  static constexpr int all = std::numeric_limits<int>::max();
  const std::shared_ptr<const SpectralBackend> backend = std::make_shared<const SpectralBackend>(fbfft());
  const std::shared_ptr<FrequencyBuffers> buffers = std::make_shared<FrequencyBuffers>(plenty);
};

TEST_P(FbfftFused, ConvolvesPlanesOfAllSizes) {
  const int points = GetParam();
  for (int channels = 1; channels <= 4; ++channels) {
    ConvProblem problem = conv_problem("5x2x1x1 * 42x1x3x3 pad 1 groups 2");
    problem.channels = 2 * channels;
    problem.height = points - 1, problem.width = points - 2;
    expect_convolution(problem, whole_plane(problem, points, points));
    problem.groups = 1, problem.channels = channels, problem.filters = 9;
    problem.height = points, problem.width = 2 * points + 5;
    expect_convolution(problem, tiled(problem, points, points));
    problem.pad_h = problem.pad_w = 0, problem.height = problem.width = points / 8 * 8 + 2;  // stored from registers
    if (points >= problem.height) expect_convolution(problem, whole_plane(problem, points, points));
  }
}

INSTANTIATE_TEST_SUITE_P(OfPoints, FbfftFused, testing::Values(8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace twiddle
