// Plans that fuse the backward pass of bias and ReLU into the transform of y's gradient.
#include "fft/spectral_plan.h"

#include <gtest/gtest.h>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_device.h"
#include "tests/support/limits.h"
#include "tests/support/plain_backend.h"

namespace twiddle {
namespace {

SpectralEngine plain_engine(const FrequencyGrid& grid, std::size_t limit = plenty) {
  return {plain_backend({grid}), std::make_shared<FrequencyBuffers>(limit), plenty};
}

// With a mask, the gradients are those of y's gradient where the mask is above zero, including the bias gradient, in
// each pass whose plan reports that it fuses the mask.
void expect_epilogue_backward(Context& ctx, ConvEngine& engine, const ConvProblem& problem) {
  SCOPED_TRACE(join(engine.name(), ", ", to_string(problem)));
  ASSERT_TRUE(first_plan(engine, problem, ConvPass::backward_weight)->facts().fuses_epilogue_backward);
  Stream& stream = *ctx.stream;
  const Tensor grad_y = random_operands(stream, problem, ConvPass::backward_input).y;
  const Tensor mask = Tensor::from(stream, problem.output_shape(), [&] {
    std::vector<float> values = grad_y.to_vector(stream);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? -values[i] : 1;
    return values;
  }());
  std::vector<float> passed = grad_y.to_vector(stream), sums(static_cast<std::size_t>(problem.filters), 0.f);
  const std::vector<float> masks = mask.to_vector(stream);
  const std::size_t places = passed.size() / static_cast<std::size_t>(problem.batch * problem.filters);
  for (std::size_t i = 0; i < passed.size(); ++i) {
    if (!(masks[i] > 0)) passed[i] = 0;
    sums[i / places % sums.size()] += passed[i];
  }
  for (const ConvPass pass : {ConvPass::backward_input, ConvPass::backward_weight}) {
    const ConvPlans plans = engine.plans(problem, pass, 1);
    if (plans.empty() || !plans.front()->facts().fuses_epilogue_backward) continue;
    ConvOperands operands = random_operands(stream, problem, pass);
    operands.y = grad_y, operands.mask = mask;
    if (pass == ConvPass::backward_weight) operands.bias = Tensor::filled(stream, {problem.filters}, not_a_number);
    run(engine, ctx, problem, pass, operands);
    if (pass == ConvPass::backward_weight) expect_close(operands.bias.to_vector(stream), sums, 2e-6f);
    operands.y = Tensor::from(stream, problem.output_shape(), passed);
    EXPECT_LE(conv_error(ctx, problem, pass, operands, all_samples), promise(Precision::fp32)) << to_string(pass);
  }
}

TEST(SpectralPlan, FusesBackwardOfBiasAndRelu) {
  Context ctx;
  const ConvProblem problem = conv_problem("5x4x9x8 * 6x2x3x3 pad 1 groups 2");
  for (const FrequencyGrid& grid : {whole_plane(problem, 10, 10), tiled(problem, 6, 8)}) {
    SpectralEngine engine = plain_engine(grid);
    expect_epilogue_backward(ctx, engine, problem);
    const std::size_t limit = scratch_bytes(engine, problem, ConvPass::backward_weight) * 6 / 10;
    SpectralEngine in_slices = plain_engine(grid, limit);
    expect_epilogue_backward(ctx, in_slices, problem);
  }
}

TEST(SpectralPlan, DoesNotShareSpectraAcrossMasks) {
  Context ctx;
  const ConvProblem problem = conv_problem("2x3x6x6 * 4x3x3x3 pad 1");
  SpectralEngine engine = plain_engine({whole_plane(problem, 7, 8)});
  const Tensor grad_y = random_operands(*ctx.stream, problem, ConvPass::backward_input).y;
  ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::backward_input);
  operands.y = grad_y;
  for (const float mask : {0.0f, 1.0f}) {  // at first nothing passes, then all
    operands.mask = Tensor::filled(*ctx.stream, problem.output_shape(), mask);
    run(engine, ctx, problem, ConvPass::backward_input, operands);
    ConvOperands plain = operands;
    plain.y = mask == 0 ? operands.mask : grad_y;
    EXPECT_LE(conv_error(ctx, problem, ConvPass::backward_input, plain, all_samples), promise(Precision::fp32));
  }
  EXPECT_EQ(engine.buffers().use().computed, 3);
  EXPECT_EQ(engine.buffers().use().reused, 1);  // w's
  const std::size_t held = engine.buffers().use().held;
  operands.mask.write();
  run(engine, ctx, problem, ConvPass::backward_input, operands);
  EXPECT_EQ(engine.buffers().use().computed, 4);
  EXPECT_EQ(engine.buffers().use().held, held) << "that of the older mask is of no use";
}

TEST_P(EveryDevice, FusedBackwardOfBiasAndReluIsCorrect) {
  Context ctx(GetParam());
  for (const auto& engine : make_conv_engines(GetParam()))
    for (const ConvProblem& problem : conv_problems({"5x4x9x8 * 6x2x3x3 pad 1 groups 2", "3x3x13x13 * 5x3x3x3 pad 1",
                                                     "2x3x24x30 * 4x3x3x3", "3x3x31x31 * 4x3x5x5 stride 2"}))
      if (const ConvPlans plans = engine->plans(problem, ConvPass::backward_weight, 1);
          !plans.empty() && plans.front()->facts().fuses_epilogue_backward)
        expect_epilogue_backward(ctx, *engine, problem);
}

}  // namespace
}  // namespace twiddle
