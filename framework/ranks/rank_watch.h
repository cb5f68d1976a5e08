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
class RankWatch {
 public:
  // `silence`: seconds without a heartbeat after which a rank that has not left counts as lost, too. A time in which
  // this thread itself did not run counts for a third of that at most: the other ranks may have been stopped with it.
  RankWatch(int rank, RankLine line, double silence);
  ~RankWatch() { leave(); }
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  void when_lost(Communicator::WhenLost listener);
  // Registers another check, which runs periodically and returns an error message; empty: no error.
  void also_ask(std::function<std::string()> what_is_wrong);
  // Registers a function that returns how long this rank has waited for its device. If all ranks have waited longer
  // than `longest`, the devices hang: no rank will submit more work. 0: no limit.
  void watch_waits(std::function<double()> seconds_waited, double longest);
  [[noreturn]] void end_all(int code);
  void leave();  // reports a normal exit to the others and stops monitoring

 private:
  using Clock = std::chrono::steady_clock;
  struct Other {
    int rank = 0;
    Socket socket;
    double silence = 0;  // seconds since its last heartbeat
    bool has_left = false, waits_for_ever = false;
  };

  void watch();
  void look_at(Other& other, double seconds);  // since the last look
  void take(Other& other, const char* signs, std::size_t count);
  void ask();
  bool waits_for_ever();
  void lose(const std::string& who);
  void send_to_others(const std::string& signs);

  int rank_;
  double silence_;
  std::vector<Other> others_;  // what changes in them is of the watching thread alone
  std::mutex mutex_;           // of the next four
  Communicator::WhenLost listener_;
  std::function<std::string()> what_is_wrong_;
  std::function<double()> seconds_waited_;
  double longest_wait_ = 0;
  std::atomic<bool> leaves_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace twiddle
