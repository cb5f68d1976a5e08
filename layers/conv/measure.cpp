#include "layers/conv/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "framework/error.h"
#include "framework/random.h"
#include "layers/conv/engines.h"

namespace twiddle {

namespace {

constexpr double budget_ms = 50;
constexpr int least_runs = 3, most_runs = 20, samples = 200;

// Uniform with mean 0 and deviation 1: as telling as normal numbers, and ten times cheaper.
Tensor random_tensor(Stream& stream, const Shape& shape, std::uint64_t seed) {
  const RandomSequence random{seed};
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = (random.uniform(i) - 0.5f) * 3.4641016f;
  return Tensor::from(stream, shape, values);
}

// The pass's inputs filled with random numbers, its result with NaN.
ConvOperands make_operands(Stream& stream, const ConvProblem& problem, ConvPass pass) {
  const float unwritten = std::numeric_limits<float>::quiet_NaN();
  const auto tensor = [&](const Shape& shape, ConvPass written_by, std::uint64_t seed) {
    return pass == written_by ? Tensor::filled(stream, shape, unwritten) : random_tensor(stream, shape, seed);
  };
  return {tensor(problem.input_shape(), ConvPass::backward_input, 1),
          tensor(problem.weight_shape(), ConvPass::backward_weight, 2),
          tensor(problem.output_shape(), ConvPass::forward, 3),
          {}};
}

}  // namespace

Measurement measure(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  using Clock = std::chrono::steady_clock;
  try {
    ConvOperands operands = make_operands(*ctx.stream, problem, pass);
    engine.run(ctx, problem, pass, operands);  // plans, allocates, warms up
    Measurement result{std::numeric_limits<double>::infinity(), conv_error(ctx, problem, pass, operands, samples), {}};
    double total = 0;
    for (int run = 0; run < most_runs && (run < least_runs || total < budget_ms); ++run) {
      ctx.stream->synchronize();
      const Clock::time_point start = Clock::now();
      engine.run(ctx, problem, pass, operands);
      ctx.stream->synchronize();
      const double milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      result.milliseconds = std::min(result.milliseconds, milliseconds);
      total += milliseconds;
    }
    return result;
  } catch (const Error& error) {
    return {0, std::numeric_limits<double>::infinity(), error.what()};
  }
}

}  // namespace twiddle
