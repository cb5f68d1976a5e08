#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/device.h"

namespace twiddle {

// Time per named range: a layer and a part of its work ("forward", "backward_input" ...). Off unless someone enables
// it, so whole iterations are timed without it. The stream is waited for only when the times are asked for.
class Profiler {
 public:
  struct Entry {
    std::string name, part;
    std::vector<double> milliseconds;  // one a visit
  };

  void enable(bool on) { enabled_ = on; }
  bool enabled() const { return enabled_; }
  void clear();
  const std::vector<Entry>& entries();  // in the order of first visit; waits for the stream
  void add(const std::string& name, const std::string& part, std::shared_ptr<Mark> start, std::shared_ptr<Mark> end);

 private:
  struct Visit {
    std::size_t entry;
    std::shared_ptr<Mark> start, end;
  };
  bool enabled_ = false;
  std::vector<Entry> entries_;
  std::vector<Visit> visits_;  // not yet read
};

// Times its own scope where the profiler is enabled; and names it to a tool that watches the device from outside.
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
  std::shared_ptr<Mark> start_;
};

}  // namespace twiddle
