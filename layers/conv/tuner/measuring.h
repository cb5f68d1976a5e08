#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace twiddle {

// Reports the tuner's progress while it measures, and stops it on request.
class Measuring {
 public:
  using Report = std::function<void(const std::string&)>;
  using Stop = std::function<bool()>;

  // `report` receives the progress after two seconds and then every ten. `stop` is polled; true stops the measurement.
  explicit Measuring(Report report, Stop stop = {}) : report_(std::move(report)), stop_(std::move(stop)) {}
  void stop_if(Stop stop) { stop_ = std::move(stop); }      // instead of the one before
  void expect(int benchmarks) { expected_ += benchmarks; }  // for the estimate of the remaining time
  void begin(const std::string& problem);                   // "forward of 16x3x32x32 * 8x3x5x5"
  void end();
  void between_two();  // measurements: throws Interrupted

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const;
  std::string remaining() const;

  Report report_;
  Stop stop_;
  std::string problem_;
  int expected_ = 0, done_ = 0;
  double before_ = 0, next_ = 2;  // seconds: of earlier benchmarks, and when the next report is due
  Clock::time_point start_ = Clock::now();
};

}  // namespace twiddle
