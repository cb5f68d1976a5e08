#include "apps/verbs/counted_work.h"

#include <fmt/core.h>

#include <utility>

#include "apps/command_line/console.h"
#include "apps/command_line/text_table.h"
#include "framework/interrupted.h"
#include "framework/text.h"

namespace twiddle {

CountedWork::CountedWork(std::string doing, std::int64_t images, bool reports, const Interrupt& interrupt)
    : doing_(std::move(doing)), images_(images), reports_(reports), interrupt_(interrupt) {}

void CountedWork::at(std::int64_t done) {
  if (interrupt_.stop())
    throw Interrupted(fmt::format("stopped {}: {} of {} were done", doing_, format_count(done), format_count(images_)));
  const Clock::time_point now = Clock::now();
  if (first_ == 0) first_ = done, first_done_ = now;
  if (!reports_ || now < next_) return;
  next_ = now + std::chrono::seconds(10);
  const double seconds = std::chrono::duration<double>(now - first_done_).count();
  const double seconds_an_image = done > first_ ? seconds / static_cast<double>(done - first_) : 0;
  write_stderr(counted_line(doing_, done, images_, seconds_an_image) + "\n");
}

std::string counted_line(const std::string& doing, std::int64_t done, std::int64_t images, double seconds_an_image) {
  const std::string line = fmt::format("{}: {} of {}", doing, format_count(done), format_count(images));
  if (seconds_an_image == 0) return line;
  return fmt::format("{}, about {} to go", line,
                     format_duration(seconds_an_image * static_cast<double>(images - done)));
}

}  // namespace twiddle
