#include "framework/profiler.h"

#include <algorithm>

namespace twiddle {

void Profiler::add(const std::string& name, const std::string& part, double milliseconds) {
  auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name && e.part == part; });
  if (entry == entries_.end()) entry = entries_.insert(entries_.end(), Entry{name, part, {}});
  entry->milliseconds.push_back(milliseconds);
}

ProfilerRange::ProfilerRange(Profiler& profiler, Stream& stream, const std::string& name, const char* part)
    : profiler_(profiler.enabled() ? &profiler : nullptr), stream_(stream), part_(part) {
  if (profiler_ == nullptr) return;
  name_ = name;
  stream_.synchronize();
  start_ = std::chrono::steady_clock::now();
}

ProfilerRange::~ProfilerRange() {
  if (profiler_ == nullptr) return;
  try {
    stream_.synchronize();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start_;
    profiler_->add(name_, part_, time.count());
  } catch (...) {  // a destructor stays silent: the device's fault is reported by the next call that meets it
  }
}

}  // namespace twiddle
