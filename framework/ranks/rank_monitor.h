#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "framework/ranks/communicator.h"
#include "framework/ranks/rank_lines.h"

namespace twiddle {

// A thread that monitors the other ranks: rank 0 monitors all others, each other rank monitors rank 0. It ends the
// process if one of them exits. Without it, a rank blocks forever in a collective that a dead rank never joins.
class RankMonitor {
 public:
  // `silence`: seconds without a heartbeat after which a rank that has not left counts as lost, too. A time in which
  // this thread itself did not run counts for a third of that at most: the other ranks may have been stopped with it.
  RankMonitor(int rank, RankLine line, double silence);
  ~RankMonitor() { leave(); }
  RankMonitor(const RankMonitor&) = delete;
  RankMonitor& operator=(const RankMonitor&) = delete;

  void when_lost(Communicator::WhenLost listener);
  // Registers another check, which runs periodically and returns an error message; empty: no error.
  void add_check(std::function<std::string()> what_is_wrong);
  // Registers a function that returns how long this rank has waited for its device. If all ranks have waited longer
  // than `longest`, the devices hang: no rank will submit more work. 0: no limit.
  void monitor_waits(std::function<double()> seconds_waited, double longest);
  [[noreturn]] void end_all(int code);
  void leave();  // reports a normal exit to the others and stops monitoring

 private:
  using Clock = std::chrono::steady_clock;
  struct Other {
    int rank = 0;
    Socket socket;
    double silence = 0;  // seconds since its last heartbeat
    bool has_left = false, waits_forever = false;
  };

  void monitor();
  void read_signs(Other& other, double seconds);  // since the last call
  void take(Other& other, const char* signs, std::size_t count);
  void run_checks();
  bool waits_forever();
  void lose(const std::string& who);
  void send_to_others(const std::string& signs);

  int rank_;
  double silence_;
  std::vector<Other> others_;  // changed by the monitoring thread only
  std::mutex mutex_;           // of the next four
  Communicator::WhenLost listener_;
  std::function<std::string()> what_is_wrong_;
  std::function<double()> seconds_waited_;
  double longest_wait_ = 0;
  std::atomic<bool> leaves_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace twiddle
