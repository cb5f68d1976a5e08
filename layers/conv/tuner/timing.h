#pragma once
#include <functional>
#include <vector>

#include "framework/device.h"

namespace twiddle {

// The clock is the stream's events: tests pass a stream with a fake clock and need not sleep.
using Work = std::function<void()>;

// Milliseconds per call of `work`, over `calls` calls in a row between two waits for the stream.
double time_in_a_row(Stream& stream, int calls, const Work& work);

// Milliseconds of one piece of work, over many samples.
struct Timing {
  std::vector<double> samples;
  double quantile(double share) const;  // 0: the least, 0.5: the median
  double variation() const;             // standard deviation over mean
};

// Samples of one call of `work`, warmed up by its caller: each the mean of a round. On a GPU a round holds as many
// calls as take about two milliseconds, or a third of a smaller budget, so that their launches hide behind each other's
// work.
Timing sample_calls(Stream& stream, double budget_ms, const Work& work);
double time_calls(Stream& stream, double budget_ms, const Work& work);  // the least of these samples

// The median milliseconds of each part. The parts run one after another, repeatedly.
std::vector<double> time_parts(Stream& stream, double budget_ms, const std::vector<Work>& parts);

}  // namespace twiddle
