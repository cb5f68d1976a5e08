#include "layers/conv/measure.h"

#include <algorithm>
#include <limits>

#include "framework/error.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/engines.h"

namespace twiddle {

namespace {

constexpr double measured_ms = 50, stretch_ms = 2;
constexpr int least_runs = 3, most_runs = 20, samples = 200;

}  // namespace

double time_stretch(Stream& stream, int calls, const std::function<void()>& work) {
  const std::shared_ptr<Mark> start = stream.mark();
  for (int call = 0; call < calls; ++call) work();
  return stream.mark()->milliseconds_since(*start) / calls;
}

double time_calls(Stream& stream, double budget_ms, const std::function<void()>& work) {
  int calls = 1;
  if (stream.device().kind != Device::Kind::cpu)
    calls = std::clamp(static_cast<int>(stretch_ms / std::max(time_stretch(stream, 1, work), 1e-3)), 1, 100);
  double best = std::numeric_limits<double>::infinity(), total = 0;
  for (int run = 0; run < most_runs && (run < least_runs || total < budget_ms); ++run) {
    const double milliseconds = time_stretch(stream, calls, work);
    best = std::min(best, milliseconds);
    total += milliseconds * calls;
  }
  return best;
}

Measurement measure(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  try {
    ConvOperands operands = random_operands(*ctx.stream, problem, pass);
    engine.run(ctx, problem, pass, operands);  // plans, allocates, warms up
    const double error = conv_error(ctx, problem, pass, operands, samples);
    return {time_calls(*ctx.stream, measured_ms, [&] { engine.run(ctx, problem, pass, operands); }), error, {}};
  } catch (const Error& error) {
    return {0, std::numeric_limits<double>::infinity(), error.what()};
  }
}

}  // namespace twiddle
