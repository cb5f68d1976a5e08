#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "apps/interrupt.h"

namespace twiddle {

// Reports progress of work on many images to standard error, first after two seconds and then every ten. After Ctrl-C
// or another request to stop, the next at() throws.
class CountedWork {
 public:
  CountedWork(std::string doing, std::int64_t images, bool reports, const Interrupt& interrupt);  // "reading images"
  void at(std::int64_t done);                                                                     // throws Interrupted

 private:
  using Clock = std::chrono::steady_clock;

  std::string doing_;
  std::int64_t images_;
  bool reports_;
  const Interrupt& interrupt_;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(2);
  std::int64_t first_ = 0;  // images done before the pace is measured: they may include autotuning
  Clock::time_point first_done_;
};

// Returns "reading images: 12,000 of 50,000, about 1:20 to go". Omits the remaining time if seconds_an_image is 0
// (unknown).
std::string counted_line(const std::string& doing, std::int64_t done, std::int64_t images, double seconds_an_image);

}  // namespace twiddle
