#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "framework/context.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "tests/support/conv_problem.h"
#include "tests/support/noise.h"

namespace twiddle {

// Runs a pass on random operands and compares it with sums in double: forward with a bias, and if `masked`, both
// backward passes with a mask and, in backward_weight, the gradient of the bias.
template <class Run>
void expect_depthwise_pass(Context& ctx, const ConvProblem& problem, ConvPass pass, bool masked, const Run& run) {
  SCOPED_TRACE(to_string(problem) + ", " + std::string(to_string(pass)) + (masked ? ", masked" : ""));
  Stream& stream = *ctx.stream;
  const bool forward = pass == ConvPass::forward, weight = pass == ConvPass::backward_weight;
  ConvOperands operands = random_operands(stream, problem, pass), plain = operands;
  if (forward) operands.bias = plain.bias = Tensor::from(stream, {problem.filters}, noise(problem.filters));
  std::vector<float> gradient;
  if (!forward) gradient = operands.y.to_vector(stream);
  if (masked && !forward) {
    const std::vector<float> mask = noise(operands.y.size(), 5);
    operands.mask = Tensor::from(stream, problem.output_shape(), mask);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      if (!(mask[i] > 0)) gradient[i] = 0;
    plain.y = Tensor::from(stream, problem.output_shape(), gradient);
  }
  if (masked && weight)
    operands.bias = Tensor::filled(stream, {problem.filters}, std::numeric_limits<float>::quiet_NaN());
  run(operands);
  plain.bias = forward ? operands.bias : Tensor();
  // In results of a few elements the terms may nearly cancel.
  const Tensor& result = forward ? operands.y : weight ? operands.w : operands.x;
  const double allowed = (result.size() < 20 ? 10 : result.size() < 200 ? 3 : 1) * promise(Precision::fp32);
  EXPECT_LE(conv_error(ctx, problem, pass, plain, std::numeric_limits<int>::max()), allowed);
  if (!(masked && weight)) return;
  const std::vector<float> bias = operands.bias.to_vector(stream);
  const std::int64_t places = std::int64_t(problem.out_height()) * problem.out_width();
  for (std::int64_t channel = 0; channel < problem.channels; ++channel) {
    double sum = 0, size = 0;
    for (int image = 0; image < problem.batch; ++image)
      for (std::int64_t i = 0; i < places; ++i) {
        const float value = gradient[static_cast<std::size_t>((image * problem.channels + channel) * places + i)];
        sum += value, size += std::abs(value);
      }
    EXPECT_NEAR(bias[static_cast<std::size_t>(channel)], sum, 1e-6 * size) << "channel " << channel;
  }
}

}  // namespace twiddle
