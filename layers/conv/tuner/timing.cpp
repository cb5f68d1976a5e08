#include "layers/conv/tuner/timing.h"

#include <algorithm>
#include <limits>

namespace twiddle {

namespace {

constexpr double round_ms = 2;
constexpr int least_runs = 3, most_runs = 20;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double time_in_a_row(Stream& stream, int calls, const Work& work) {
  const std::shared_ptr<Event> start = stream.record_event();
  for (int call = 0; call < calls; ++call) work();
  return stream.record_event()->milliseconds_since(*start) / calls;
}

double time_calls(Stream& stream, double budget_ms, const Work& work) {
  int calls = 1;
  if (stream.device().kind != Device::Kind::cpu)
    calls = std::clamp(
        static_cast<int>(std::min(round_ms, budget_ms / least_runs) / std::max(time_in_a_row(stream, 1, work), 1e-3)),
        1, 100);
  double best = std::numeric_limits<double>::infinity(), total = 0;
  for (int run = 0; run < most_runs && (run < least_runs || total < budget_ms); ++run) {
    const double milliseconds = time_in_a_row(stream, calls, work);
    best = std::min(best, milliseconds);
    total += milliseconds * calls;
  }
  return best;
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
    std::vector<double> times;
    for (const auto& marks : runs) times.push_back(marks[part + 1]->milliseconds_since(*marks[part]));
    milliseconds.push_back(median(std::move(times)));
  }
  return milliseconds;
}

}  // namespace twiddle
