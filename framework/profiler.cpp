#include "framework/profiler.h"

#include <algorithm>
#include <utility>

namespace twiddle {

void Profiler::clear() {
  entries_.clear();
  visits_.clear();
}

void Profiler::add(const std::string& name, const std::string& part, std::shared_ptr<Event> start,
                   std::shared_ptr<Event> end) {
  auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name && e.part == part; });
  if (entry == entries_.end()) entry = entries_.insert(entries_.end(), Entry{name, part, {}});
  visits_.push_back({static_cast<std::size_t>(entry - entries_.begin()), std::move(start), std::move(end)});
}

const std::vector<Profiler::Entry>& Profiler::entries() {
  for (const Visit& visit : visits_)
    entries_[visit.entry].milliseconds.push_back(visit.end->milliseconds_since(*visit.start));
  visits_.clear();
  return entries_;
}

ProfilerRange::ProfilerRange(Profiler& profiler, Stream& stream, const std::string& name, const char* part)
    : profiler_(profiler.enabled() ? &profiler : nullptr), stream_(stream), part_(part) {
  if (profiler_ == nullptr) return;
  name_ = name;
  start_ = stream_.record_event();  // may throw, so this precedes the range's registration
  stream_.begin_range((name + " " + part).c_str());
  profiler_->open_.push_back(this);
  stage_around_ = std::exchange(profiler_->open_stage_, nullptr);
}

ProfilerRange::~ProfilerRange() {
  if (profiler_ == nullptr) return;
  profiler_->open_.pop_back();
  profiler_->open_stage_ = stage_around_;
  try {
    profiler_->add(name_, part_, std::move(start_), stream_.record_event());
  } catch (...) {  // a destructor stays silent: the device's fault is reported by the next call that meets it
  }
  stream_.end_range();
}

StageRange::StageRange(Profiler& profiler, Stream& stream, const char* stage)
    : profiler_(profiler.stages_ && !profiler.open_.empty() ? &profiler : nullptr), stream_(stream) {
  if (profiler_ == nullptr) return;
  start_ = stream_.record_event();  // may throw, as above
  outer_ = std::exchange(profiler_->open_stage_, this);
  part_ = (outer_ != nullptr ? outer_->part_ : profiler_->open_.back()->part_) + std::string(": ") + stage;
}

StageRange::~StageRange() {
  if (profiler_ == nullptr) return;
  profiler_->open_stage_ = outer_;
  try {
    profiler_->add(profiler_->open_.back()->name_, part_, std::move(start_), stream_.record_event());
  } catch (...) {  // silent, as above
  }
}

}  // namespace twiddle
