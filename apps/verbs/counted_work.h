#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "apps/interrupt.h"

namespace twiddle {

// Work on many images, for who waits for it: how far it is, on standard error, where it takes longer than two seconds,
// and then every ten. Ctrl-C and what else asks the process to end stops it at the next at().
class CountedWork {
 public:
  CountedWork(std::string doing, std::int64_t images, bool tells, const Interrupt& interrupt);  // "reading images"
  void at(std::int64_t done);                                                                   // throws Interrupted

 private:
  using Clock = std::chrono::steady_clock;

  std::string doing_;
  std::int64_t images_;
  bool tells_;
  const Interrupt& interrupt_;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(2);
  std::int64_t first_ = 0;  // images, after which the pace is reckoned: before them engines may have been measured
  Clock::time_point first_done_;
};

// "reading images: 12,000 of 50,000, about 1:20 to go"
// Without what is left where seconds_an_image is 0, not known.
std::string counted_line(const std::string& doing, std::int64_t done, std::int64_t images, double seconds_an_image);

}  // namespace twiddle
