// Limits the number of launches of the engine fbfft: a captured graph of its passes reports how many it holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "fft/spectral_engine.h"
#include "framework/cuda/cuda_stream.h"
#include "framework/error.h"
#include "layers/conv/tuner/conv_check.h"
#include "layers/layer.h"
#include "tests/support/conv_problem.h"
#include "tests/support/limits.h"
#include "tests/support/on_gpu.h"
#include "tests/support/spectral_plan.h"

namespace twiddle {
namespace {

using Passes = std::vector<ConvPass>;

const Passes training_step{ConvPass::forward, ConvPass::backward_weight, ConvPass::backward_input};
const std::string in_the_inverse;  // no separate product

// A convolution with bias and ReLU, which are fused in all of its passes.
class Layer {
 public:
  Layer(Context& ctx, const ConvProblem& problem, const FrequencyGrid& grid, const std::string& product)
      : ctx_(ctx),
        problem_(problem),
        x_(operands(ConvPass::forward).x),
        w_(operands(ConvPass::forward).w),
        y_(operands(ConvPass::forward).y),
        bias_(Tensor::filled(*ctx.stream, {problem.filters}, 0.5f)),
        grad_x_(operands(ConvPass::backward_input).x),
        grad_w_(operands(ConvPass::backward_weight).w),
        grad_y_(operands(ConvPass::backward_weight).y),
        grad_bias_(Tensor(*ctx.stream, {problem.filters})) {
    const auto backend = std::make_shared<const SpectralBackend>(fbfft());
    const auto buffers = std::make_shared<FrequencyBuffers>(plenty);
    for (const ConvPass pass : every_pass) {
      const bool depthwise = is_depthwise(problem);
      const bool can_fuse = depthwise ? pass != ConvPass::backward_weight : pass == ConvPass::forward;
      const bool fused = product == in_the_inverse && can_fuse;
      const std::string first = depthwise ? "channels" : std::string(backend->products.front()->name());
      const std::string& usual = product == in_the_inverse ? first : product;
      plans_.push_back(spectral_plan(backend, buffers, problem, pass, grid, fused ? "" : usual));
    }
  }

  void run(ConvPass pass, bool bias_gradient) {
    ConvOperands operands{x_, w_, grad_y_};
    if (pass == ConvPass::forward)
      operands.y = y_, operands.bias = bias_, operands.relu = true;
    else
      operands.mask = y_;
    if (pass == ConvPass::backward_input) operands.x = grad_x_;
    if (pass == ConvPass::backward_weight) operands.w = grad_w_;
    if (pass == ConvPass::backward_weight && bias_gradient) operands.bias = grad_bias_;
    plans_[static_cast<std::size_t>(pass)]->run(ctx_, operands);
  }

 private:
  ConvOperands operands(ConvPass pass) { return random_operands(*ctx_.stream, problem_, pass); }

  Context& ctx_;
  ConvProblem problem_;
  Tensor x_, w_, y_, bias_, grad_x_, grad_w_, grad_y_, grad_bias_;
  std::vector<std::shared_ptr<const ConvPlan>> plans_;  // by pass
};

class FbfftLaunches : public OnGpu {
 protected:
  // Captures these passes in a row. The first one finds no spectra: a graph reuses none from before the capture.
  int launches(Layer& layer, const Passes& passes, bool bias_gradient = false) {
    const auto work = [&] {
      for (const ConvPass pass : passes) layer.run(pass, bias_gradient);
    };
    work();
    const auto graph = stream().capture(work);
    return static_cast<int>(launches_of(*graph));
  }
};

// The transforms of both factors, the product and the inverse; only the last two if another pass has left the spectra.
// Sums are short here: cuBLAS and our own products split long ones (split-K).
TEST_F(FbfftLaunches, AreAtMostFourPerPass) {
  struct Case {
    const char* problem;
    int points;
  };
  for (const Case& each : {Case{"16x8x13x13 * 12x8x3x3 pad 1", 14}, Case{"5x6x28x28 * 7x6x5x5 pad 2", 30},
                           Case{"3x5x56x60 * 4x5x9x9", 64}})
    for (const char* const product : {"tiles", "tiles_3m", "strided_batched"}) {
      const ConvProblem problem = conv_problem(each.problem);
      Layer layer(*ctx, problem, whole_plane(problem, each.points, each.points), product);
      for (const ConvPass pass : every_pass) {
        const int first = launches(layer, {pass}), second = launches(layer, {pass, pass}) - first;
        const std::string what = join(each.problem, ", ", product, ", ", to_string(pass));
        std::printf("%s: %d launches, then %d\n", what.c_str(), first, second);
        const bool own = std::string_view(product) != "strided_batched";  // cuBLAS may do with more, or fewer
        EXPECT_TRUE(own ? first == 4 : first <= 4) << what;
        EXPECT_TRUE(own ? second == 2 : second <= 2) << what;
      }
    }
}

// x, w and the gradient of y are transformed once for the three passes, with bias and ReLU fused in both directions.
TEST_F(FbfftLaunches, AreNinePerTrainingStep) {
  const ConvProblem problem = conv_problem("16x8x13x13 * 12x8x3x3 pad 1");
  Layer layer(*ctx, problem, whole_plane(problem, 14, 14), "tiles");
  const int without = launches(layer, training_step), with_bias = launches(layer, training_step, true);
  std::printf("a training step: %d launches, %d with the bias' gradient\n", without, with_bias);
  EXPECT_EQ(without, 9);
  EXPECT_EQ(with_bias, 9 + 1) << "the sum over the spectra's constant parts";
}

TEST_F(FbfftLaunches, AreThreeIfInverseFusesProduct) {
  const ConvProblem problem = conv_problem("4x3x30x30 * 8x3x3x3 pad 1");
  Layer layer(*ctx, problem, whole_plane(problem, 32, 32), in_the_inverse);
  EXPECT_LE(launches(layer, {ConvPass::forward}), 3);
}

// x, w and the gradient of y are transformed once; two products are fused into the inverse, and that of the batch is a
// sum.
TEST_F(FbfftLaunches, AreSevenPerDepthwiseTrainingStep) {
  const ConvProblem problem = conv_problem("16x40x28x28 * 40x1x13x13 pad 6 groups 40");
  Layer layer(*ctx, problem, whole_plane(problem, 36, 36), in_the_inverse);
  EXPECT_EQ(launches(layer, training_step), 7);
}

// Windows of x overlap, and more of them do if the kernel is large compared with the tile. Tiles of one color do not
// overlap: a separate launch adds each color to x's gradient. The other passes have nothing to accumulate.
TEST_F(FbfftLaunches, AddOnePerTileColor) {
  struct Case {
    const char* problem;
    int height, width, colours;
  };
  for (const Case& each : {Case{"2x4x24x24 * 6x4x3x3 pad 1", 16, 16, 4}, Case{"2x4x16x60 * 6x4x5x5 pad 2", 32, 32, 2},
                           Case{"2x4x20x20 * 6x4x5x5 pad 2", 8, 8, 4}, Case{"1x4x20x20 * 6x4x7x7 pad 3", 8, 8, 16}}) {
    const ConvProblem problem = conv_problem(each.problem);
    Layer layer(*ctx, problem, tiled(problem, each.height, each.width), "tiles");
    for (const ConvPass pass : every_pass) {
      const int found = launches(layer, {pass});
      std::printf("%s, tiles: %s: %d launches\n", each.problem, std::string(to_string(pass)).c_str(), found);
      EXPECT_EQ(found, pass == ConvPass::backward_input ? 3 + each.colours : 4) << each.problem;
    }
  }
}

// A sum over more than 256 terms, with too few product tiles to occupy a GPU.
TEST_F(FbfftLaunches, AddOneForSplitK) {
  const ConvProblem problem = conv_problem("600x4x13x13 * 4x4x3x3 pad 1");
  Layer layer(*ctx, problem, whole_plane(problem, 14, 14), "tiles");
  EXPECT_LE(launches(layer, {ConvPass::forward}), 4);
  EXPECT_LE(launches(layer, {ConvPass::backward_weight}), 4 + 1);
}

}  // namespace
}  // namespace twiddle
