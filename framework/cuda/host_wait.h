#pragma once
#include <atomic>
#include <chrono>

namespace twiddle {

// Since when a thread of the host has been waiting for what a GPU was given, for another thread that watches over it.
class HostWait {
 public:
  // A wait, during its lifetime. One that starts during another one is counted together with it.
  class Span {
   public:
    explicit Span(HostWait& wait) : wait_(wait) {
      Ticks none = 0;
      is_first_ = wait.since_.compare_exchange_strong(none, now());
    }
    ~Span() {
      if (is_first_) wait_.since_ = 0;
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    HostWait& wait_;
    bool is_first_ = false;
  };

  double seconds() const {  // 0: no thread waits
    const Ticks since = since_;
    return since == 0 ? 0 : std::chrono::duration<double>(Clock::duration(now() - since)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Ticks = Clock::rep;
  static Ticks now() { return Clock::now().time_since_epoch().count(); }
  std::atomic<Ticks> since_ = 0;
};

}  // namespace twiddle
