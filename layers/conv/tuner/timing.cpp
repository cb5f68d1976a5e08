#include "layers/conv/tuner/timing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace twiddle {

namespace {

constexpr double round_ms = 2;
constexpr int least_runs = 3, most_runs = 20;

}  // namespace

double time_in_a_row(Stream& stream, int calls, const Work& work) {
  const std::shared_ptr<Event> start = stream.record_event();
  for (int call = 0; call < calls; ++call) work();
  return stream.record_event()->milliseconds_since(*start) / calls;
}

double Timing::quantile(double share) const {
  if (samples.empty()) return 0;
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

double Timing::variation() const {
  if (samples.size() < 2) return 0;
  const auto count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / (count - 1)) / mean;
}

Timing sample_calls(Stream& stream, double budget_ms, const Work& work) {
  int calls = 1;
  if (stream.device().kind != Device::Kind::cpu)
    calls = std::clamp(
        static_cast<int>(std::min(round_ms, budget_ms / least_runs) / std::max(time_in_a_row(stream, 1, work), 1e-3)),
        1, 100);
  Timing timing;
  double total = 0;
  for (int run = 0; run < most_runs && (run < least_runs || total < budget_ms); ++run) {
    timing.samples.push_back(time_in_a_row(stream, calls, work));
    total += timing.samples.back() * calls;
  }
  return timing;
}

double time_calls(Stream& stream, double budget_ms, const Work& work) {
  return sample_calls(stream, budget_ms, work).quantile(0);
}

// The first of a round waits for its launches; the median does not mind.
std::vector<double> time_parts(Stream& stream, double budget_ms, const std::vector<Work>& parts) {
  std::vector<std::vector<std::shared_ptr<Event>>> runs;
  time_calls(stream, budget_ms, [&] {
    std::vector<std::shared_ptr<Event>>& marks = runs.emplace_back();
    marks.push_back(stream.record_event());
    for (const Work& part : parts) part(), marks.push_back(stream.record_event());
  });
  std::vector<double> milliseconds;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    Timing timing;
    for (const auto& marks : runs) timing.samples.push_back(marks[part + 1]->milliseconds_since(*marks[part]));
    milliseconds.push_back(timing.quantile(0.5));
  }
  return milliseconds;
}

}  // namespace twiddle
