#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/device.h"

namespace twiddle {

class ProfilerRange;
class StageRange;

// Time per named range: a layer and a part of its work ("forward", "backward_input" ...). Off unless someone enables
// it, so whole iterations are timed without it. The stream is waited for only when the times are read.
class Profiler {
 public:
  struct Entry {
    std::string name, part;
    std::vector<double> milliseconds;  // one per visit
  };

  // With `stages`, the stages of a part are timed too: entries "forward: fft of x" in addition to "forward", and
  // "forward: fft of x: pad" for a nested stage.
  void enable(bool on, bool stages = false) { enabled_ = on, stages_ = on && stages; }
  bool enabled() const { return enabled_; }
  void clear();
  const std::vector<Entry>& entries();  // in the order of first visit; waits for the stream
  void add(const std::string& name, const std::string& part, std::shared_ptr<Event> start, std::shared_ptr<Event> end);

 private:
  friend class ProfilerRange;
  friend class StageRange;
  struct Visit {
    std::size_t entry;
    std::shared_ptr<Event> start, end;
  };
  bool enabled_ = false, stages_ = false;
  std::vector<const ProfilerRange*> open_;  // the innermost last
  const StageRange* open_stage_ = nullptr;  // the innermost of that range
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
  friend class StageRange;
  Profiler* profiler_;  // null while the profiler is off
  Stream& stream_;
  std::string name_;
  const char* part_;
  const StageRange* stage_around_ = nullptr;
  std::shared_ptr<Event> start_;
};

// Times one stage of the innermost open range or stage, for code that does not know whose work it does.
class StageRange {
 public:
  StageRange(Profiler& profiler, Stream& stream, const char* stage);
  ~StageRange();
  StageRange(const StageRange&) = delete;
  StageRange& operator=(const StageRange&) = delete;

 private:
  Profiler* profiler_;  // null while stages are off
  Stream& stream_;
  const StageRange* outer_ = nullptr;
  std::string part_;  // of the range, and all stages down to this one
  std::shared_ptr<Event> start_;
};

}  // namespace twiddle
