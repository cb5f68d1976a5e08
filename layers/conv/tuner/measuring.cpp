#include "layers/conv/tuner/measuring.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/interrupted.h"

namespace twiddle {

void Measuring::begin(const std::string& problem) {
  problem_ = problem;
  start_ = Clock::now();
}

void Measuring::end() {
  before_ = seconds();
  ++done_;
  problem_.clear();
}

void Measuring::between_two() {
  if (stop_ && stop_()) throw Interrupted();
  if (!report_ || problem_.empty() || seconds() < next_) return;
  next_ = seconds() + 10;
  report_(fmt::format("measuring convolution engines: {:.0f} s so far{}, at {}", seconds(), remaining(), problem_));
}

double Measuring::seconds() const {
  return before_ + std::chrono::duration<double>(Clock::now() - start_).count();
}

// Assumes that each remaining benchmark, the current one too, takes the mean time of the finished ones.
std::string Measuring::remaining() const {
  const int left = expected_ - done_ - 1;
  if (left < 0) return {};
  const double each = done_ > 0 ? before_ / done_ : seconds();
  const double own = std::max(0.0, each - (seconds() - before_));
  return fmt::format(", about {:.0f} s to go", own + left * each);
}

}  // namespace twiddle
