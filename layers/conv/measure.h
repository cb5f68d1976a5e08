#pragma once
#include <array>
#include <functional>
#include <string>

#include "framework/convolution.h"

namespace twiddle {

// Milliseconds a call of `work`, of so many in a row between two waits for the stream.
double time_stretch(Stream& stream, int calls, const std::function<void()>& work);

// Milliseconds of one call of `work`, warmed up by its caller: the best of a few stretches. On a GPU a stretch holds as
// many calls as take about two milliseconds, or a third of a smaller budget, so that their launches hide behind each
// other's work.
double time_calls(Stream& stream, double budget_ms, const std::function<void()>& work);

// Milliseconds of forward, backward_input and backward_weight, run as a training step runs them: on the same x, w and
// gradient, which are new in each step. What one pass leaves behind helps the next, where the engine can use it. A pass
// that training has no use for is left out, and takes none.
std::array<double, 3> measure_step(Context& ctx, ConvEngine& engine, const ConvProblem& problem, double budget_ms);

// How fast and how exact an engine does one pass, on random data.
struct Measurement {
  double milliseconds = 0;  // the best of a few runs, each on new operands
  double error = 0;         // conv_error of a sample; NaN where elements were left unwritten
  std::string failure;      // what it threw; then the error is infinite
};
Measurement measure(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass, double budget_ms = 50);
// The same after the engine was tuned for the problem.
Measurement measure_tuned(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass,
                          double budget_ms = 50);
// Its milliseconds alone; infinite where it fails.
double time_pass(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass, double budget_ms);

}  // namespace twiddle
