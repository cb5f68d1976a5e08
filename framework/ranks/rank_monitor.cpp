#include "framework/ranks/rank_monitor.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "framework/error.h"

namespace twiddle {

namespace {

// One byte each; the exit code follows `ends_all`.
constexpr char alive = '.', waits = 'w', leaves = '-', ends_all = '!';
constexpr int poll_every_ms = 200;
constexpr double heartbeat_every = 1;  // seconds

double seconds_from(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

RankMonitor::RankMonitor(int rank, RankLine line, double silence) : rank_(rank), silence_(silence) {
  for (Socket& socket : line) {
    Other& other = others_.emplace_back();
    other.rank = rank == 0 ? static_cast<int>(others_.size()) : 0;
    other.socket = std::move(socket);
  }
  thread_ = std::thread([this] { monitor(); });
}

void RankMonitor::leave() {
  if (leaves_.exchange(true)) return;
  thread_.join();
  send_to_others({leaves});
}

void RankMonitor::when_lost(Communicator::WhenLost listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void RankMonitor::add_check(std::function<std::string()> what_is_wrong) {
  const std::lock_guard lock(mutex_);
  what_is_wrong_ = std::move(what_is_wrong);
}

void RankMonitor::monitor_waits(std::function<double()> seconds_waited, double longest) {
  const std::lock_guard lock(mutex_);
  seconds_waited_ = std::move(seconds_waited), longest_wait_ = longest;
}

bool RankMonitor::waits_forever() {
  const std::lock_guard lock(mutex_);
  return seconds_waited_ && longest_wait_ > 0 && seconds_waited_() > longest_wait_;
}

void RankMonitor::end_all(int code) {
  send_to_others({ends_all, static_cast<char>(code)});
  std::_Exit(code);
}

void RankMonitor::monitor() {
  Clock::time_point last_sent = Clock::now(), looked = Clock::now();
  while (!leaves_) {
    std::vector<pollfd> wanted;
    for (const Other& other : others_) wanted.push_back({other.has_left ? -1 : other.socket.handle(), POLLIN, 0});
    poll(wanted.data(), wanted.size(), poll_every_ms);
    const double seconds = seconds_from(looked);  // before the heartbeats of this time are read
    looked = Clock::now();
    for (Other& other : others_)
      if (!other.has_left) read_signs(other, std::min(seconds, silence_ / 3));
    if (seconds_from(last_sent) < heartbeat_every) continue;
    last_sent = Clock::now();
    send_to_others({waits_forever() ? waits : alive});
    // A rank that leaves normally may abort collectives: this is not a failure.
    if (std::none_of(others_.begin(), others_.end(), [](const Other& other) { return other.has_left; })) run_checks();
  }
}

void RankMonitor::run_checks() {
  std::string wrong;
  {
    const std::lock_guard lock(mutex_);
    if (what_is_wrong_) wrong = what_is_wrong_();
  }
  if (!wrong.empty()) lose(wrong);
  const auto waits_too = [](const Other& other) { return other.waits_forever; };
  if (rank_ == 0 && waits_forever() && std::all_of(others_.begin(), others_.end(), waits_too))
    lose(join("all ranks have waited ", longest_wait_,
              " s for their GPUs: a kernel hangs, or a collective that one of them does not join. If steps of this "
              "network take that long, set train.collective_timeout above ",
              longest_wait_));
}

void RankMonitor::read_signs(Other& other, double seconds) {
  char signs[64];
  const ssize_t count = recv(other.socket.handle(), signs, sizeof signs, MSG_DONTWAIT);
  if (count > 0) return take(other, signs, static_cast<std::size_t>(count));
  const bool nothing_yet = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (!nothing_yet) return lose(join("rank ", other.rank, " disconnected unexpectedly"));
  other.silence += seconds;
  if (other.silence > silence_)
    lose(join("no heartbeat from rank ", other.rank, " for ", silence_,
              " s: its process was stopped or its host is unreachable"));
}

void RankMonitor::take(Other& other, const char* signs, std::size_t count) {
  other.silence = 0;
  for (std::size_t i = 0; i < count && !other.has_left; ++i) {
    other.has_left = signs[i] == leaves;
    other.waits_forever = signs[i] == waits;
    if (signs[i] != ends_all) continue;
    const int code = i + 1 < count ? static_cast<unsigned char>(signs[i + 1]) : 1;
    if (rank_ == 0) end_all(code);
    std::_Exit(code);
  }
}

void RankMonitor::lose(const std::string& who) {
  {
    const std::lock_guard lock(mutex_);
    if (listener_) listener_(who);
  }
  end_all(static_cast<int>(ErrorKind::failed));
}

// Also those that have left, to which nothing is sent any more: any thread may call this, and which have left only the
// monitoring thread knows.
void RankMonitor::send_to_others(const std::string& signs) {
  for (const Other& other : others_)
    static_cast<void>(::send(other.socket.handle(), signs.data(), signs.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace twiddle
