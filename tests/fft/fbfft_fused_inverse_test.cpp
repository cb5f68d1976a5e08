// Products of the engine fbfft that are fused into the inverse, run on a GPU: fused_product_source_test.cpp runs their
// blocks on the CPU.
#include <gtest/gtest.h>

#include "fft/cuda/planes/tuned_on_h200.h"
#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"
#include "tests/support/limits.h"
#include "tests/support/on_gpu.h"
#include "tests/support/spectral_plan.h"

namespace twiddle {
namespace {

class FbfftFusedInverses : public OnGpu {
 protected:
  void expect_convolution(const ConvProblem& problem, const FrequencyGrid& grid, ConvPass pass = ConvPass::forward) {
    SCOPED_TRACE(join(to_string(problem), ", ", to_string(grid), ", ", to_string(pass)));
    const auto plan = spectral_plan(backend, buffers, problem, pass, grid);
    ConvOperands operands = random_operands(stream(), problem, pass);
    if (pass == ConvPass::forward) operands.bias = Tensor::filled(stream(), {problem.filters}, 0.5f);
    (pass == ConvPass::forward ? operands.y : operands.x) = poisoned(shape_of(problem, written_by(pass)));
    plan->run(*ctx, operands);
    EXPECT_LE(conv_error(*ctx, problem, pass, operands, all_samples), promise(Precision::fp32));
  }
  static ConvOperand written_by(ConvPass pass) { return pass == ConvPass::forward ? ConvOperand::y : ConvOperand::x; }

  const std::shared_ptr<const SpectralBackend> backend = std::make_shared<const SpectralBackend>(fbfft());
  const std::shared_ptr<FrequencyBuffers> buffers = std::make_shared<FrequencyBuffers>(plenty);
};

class FbfftFused : public FbfftFusedInverses, public testing::WithParamInterface<int> {};
class FbfftFusedDepthwise : public FbfftFusedInverses {};

TEST_P(FbfftFused, ConvolvesPlanesOfAllSizes) {
  const int points = GetParam();
  for (int channels = 1; channels <= 4; ++channels) {
    ConvProblem problem = conv_problem("5x1x1x1 * 42x1x3x3 pad 1");
    problem.channels = channels;
    problem.height = points - 1, problem.width = points - 2;
    expect_convolution(problem, whole_plane(problem, points, points));
    problem.filters = 9;
    problem.height = points, problem.width = 2 * points + 5;
    expect_convolution(problem, tiled(problem, points, points));
    problem.pad_h = problem.pad_w = 0, problem.height = problem.width = points / 8 * 8 + 2;  // stored from registers
    if (points >= problem.height) expect_convolution(problem, whole_plane(problem, points, points));
  }
}

TEST_F(FbfftFusedDepthwise, ConvolvesPlanesOfAllSizes) {
  for (const int points : small_fft::channel_inverse_points) {
    ConvProblem problem = conv_problem("5x37x1x1 * 37x1x5x5 pad 2 groups 37");
    problem.height = points - 2, problem.width = points - 3;
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input}) {
      expect_convolution(problem, whole_plane(problem, points, points), pass);
      problem.width = 2 * points + 5;
      expect_convolution(problem, tiled(problem, points, points), pass);
      problem.width = points - 3;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfPoints, FbfftFused, testing::Values(8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace twiddle
