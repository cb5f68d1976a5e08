#include "apps/bench/largest_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/context.h"
#include "framework/random.h"
#include "layers/conv/engines/engines.h"

namespace twiddle {
namespace {

std::vector<float> uniform(const Shape& shape, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  const RandomSequence random{seed};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform(static_cast<std::int64_t>(i)) - 1;
  return values;
}

}  // namespace

UniformCheck::UniformCheck(Stream& stream, const ConvProblem& problem) : shape_(problem.output_shape()) {
  const std::vector<float> x = uniform(problem.input_shape(), 1), w = uniform(problem.weight_shape(), 2);
  x_ = Tensor::from(stream, problem.input_shape(), x), w_ = Tensor::from(stream, problem.weight_shape(), w);
  expected_.resize(static_cast<std::size_t>(count_of(shape_)));
  const auto count = static_cast<std::int64_t>(expected_.size());
#pragma omp parallel for
  for (std::int64_t i = 0; i < count; ++i)
    expected_[static_cast<std::size_t>(i)] =
        conv_reference(problem, ConvPass::forward, x.data(), w.data(), nullptr, nullptr, i);
}

double UniformCheck::largest_error(Context& ctx, const ConvPlan& plan) const {
  ConvOperands operands{x_, w_, Tensor::filled(*ctx.stream, shape_, std::numeric_limits<float>::quiet_NaN())};
  plan.run(ctx, operands);
  const std::vector<float> found = operands.y.to_vector(*ctx.stream);
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(found[i] - expected_[i]);
    if (!(error <= largest)) largest = error;
    if (std::isnan(error)) break;
  }
  return largest;
}

}  // namespace twiddle
