#include "layers/conv/measure.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "framework/error.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/engines.h"

namespace twiddle {

namespace {

constexpr double stretch_ms = 2;
constexpr int least_runs = 3, most_runs = 20, samples = 200;

// Nothing kept from the call before holds for the next: in training each pass meets new numbers.
void renew(ConvOperands& operands) {
  for (Tensor* tensor : {&operands.x, &operands.w, &operands.y}) tensor->write();
}

double time_runs(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass, ConvOperands& operands,
                 double budget_ms) {
  return time_calls(*ctx.stream, budget_ms, [&] {
    renew(operands);
    engine.run(ctx, problem, pass, operands);
  });
}

}  // namespace

double time_stretch(Stream& stream, int calls, const std::function<void()>& work) {
  const std::shared_ptr<Mark> start = stream.mark();
  for (int call = 0; call < calls; ++call) work();
  return stream.mark()->milliseconds_since(*start) / calls;
}

double time_calls(Stream& stream, double budget_ms, const std::function<void()>& work) {
  int calls = 1;
  if (stream.device().kind != Device::Kind::cpu)
    calls = std::clamp(
        static_cast<int>(std::min(stretch_ms, budget_ms / least_runs) / std::max(time_stretch(stream, 1, work), 1e-3)),
        1, 100);
  double best = std::numeric_limits<double>::infinity(), total = 0;
  for (int run = 0; run < most_runs && (run < least_runs || total < budget_ms); ++run) {
    const double milliseconds = time_stretch(stream, calls, work);
    best = std::min(best, milliseconds);
    total += milliseconds * calls;
  }
  return best;
}

std::array<double, 3> measure_step(Context& ctx, ConvEngine& engine, const ConvProblem& problem, double budget_ms) {
  Stream& stream = *ctx.stream;
  ConvOperands forward = random_operands(stream, problem, ConvPass::forward);
  ConvOperands input = random_operands(stream, problem, ConvPass::backward_input);
  input.w = forward.w;
  ConvOperands weight{forward.x, Tensor(stream, problem.weight_shape()), input.y};
  ConvOperands* const operands[] = {&forward, &input, &weight};

  std::vector<std::array<std::shared_ptr<Mark>, 4>> marks;
  const auto step = [&] {
    renew(forward), renew(weight), renew(input);
    auto& times = marks.emplace_back();
    times[0] = stream.mark();
    for (int pass = 0; pass < 3; ++pass) {
      if (problem.in_training(every_pass[pass])) engine.run(ctx, problem, every_pass[pass], *operands[pass]);
      times[static_cast<std::size_t>(pass) + 1] = stream.mark();
    }
  };
  step();  // plans, allocates, warms up
  marks.clear();
  time_calls(stream, budget_ms, step);

  // The first of a stretch waits for its launches; the median does not mind.
  std::array<double, 3> milliseconds{};
  for (std::size_t pass = 0; pass < 3; ++pass) {
    std::vector<double> times;
    for (const auto& each : marks) times.push_back(each[pass + 1]->milliseconds_since(*each[pass]));
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    if (problem.in_training(every_pass[pass]))
      milliseconds[static_cast<std::size_t>(every_pass[pass])] = times[times.size() / 2];
  }
  return milliseconds;
}

Measurement measure(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass, double budget_ms) try {
  ConvOperands operands = random_operands(*ctx.stream, problem, pass);
  engine.run(ctx, problem, pass, operands);  // plans, allocates, warms up
  const double error = conv_error(ctx, problem, pass, operands, samples);
  return {time_runs(ctx, engine, problem, pass, operands, budget_ms), error, {}};
} catch (const Error& error) {
  return {0, std::numeric_limits<double>::infinity(), error.what()};
}

Measurement measure_tuned(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass,
                          double budget_ms) try {
  engine.tune(ctx, problem);
  return measure(ctx, engine, problem, pass, budget_ms);
} catch (const Error& error) {
  return {0, std::numeric_limits<double>::infinity(), error.what()};
}

double time_pass(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass, double budget_ms) try {
  ConvOperands operands = random_operands(*ctx.stream, problem, pass);
  engine.run(ctx, problem, pass, operands);
  return time_runs(ctx, engine, problem, pass, operands, budget_ms);
} catch (const Error&) {
  return std::numeric_limits<double>::infinity();
}

}  // namespace twiddle
