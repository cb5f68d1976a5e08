#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "framework/device.h"

namespace twiddle {

// Time per named range: a layer and a part of its work ("forward", "backward_input" ...). Off unless someone enables
// it: each range then waits for the stream at both ends, so whole iterations are timed without it.
class Profiler {
 public:
  struct Entry {
    std::string name, part;
    std::vector<double> milliseconds;  // one a visit
  };

  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }
  void clear() { entries_.clear(); }
  const std::vector<Entry>& entries() const { return entries_; }  // in the order of first visit
  void add(const std::string& name, const std::string& part, double milliseconds);

 private:
  bool enabled_ = false;
  std::vector<Entry> entries_;
};

// Times its own scope where the profiler is enabled.
class ProfilerRange {
 public:
  ProfilerRange(Profiler& profiler, Stream& stream, const std::string& name, const char* part);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  Profiler* profiler_;  // null while the profiler is off
  Stream& stream_;
  std::string name_;
  const char* part_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace twiddle
