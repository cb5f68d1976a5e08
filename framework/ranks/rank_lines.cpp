#include "framework/ranks/rank_lines.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "framework/error.h"

namespace twiddle {

namespace {

constexpr std::size_t lines = 3;

RankLine& line_of(RankLines& all, std::size_t number) {
  RankLine* const each[lines] = {&all.texts, &all.last, &all.life};
  return *each[number];
}

// A rank sends this first, then the token.
struct Hello {
  char word[8] = {'t', 'w', 'i', 'd', 'd', 'l', 'e', '2'};
  std::int32_t rank = 0, size = 0, line = 0, token_size = 0;
};

class Deadline {
 public:
  explicit Deadline(double seconds) : end_(Clock::now() + std::chrono::duration<double>(seconds)) {}
  double left() const { return std::chrono::duration<double>(end_ - Clock::now()).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
};

constexpr char here = '+';  // rank 0's answer, once all have come

std::string missing_text(const RankLines& all, const Launch& launch, double patience) {
  std::string ranks;
  for (int rank = 1; rank < launch.size; ++rank)
    if (!all.life[static_cast<std::size_t>(rank - 1)].open()) ranks += join(ranks.empty() ? "" : ", ", rank);
  return join("of ", launch.size, " ranks these did not connect to ", to_string(launch.rendezvous), " within ",
              patience, " s: ", ranks, "\n  Check that they were started and that their hosts can reach this port");
}

// A connection that has not said yet which rank it is of.
struct Caller {
  Socket socket;
  std::string address = address_of_peer(socket), said = {};
  Deadline deadline{5};
};

// Callers are served at once, whatever each of them says and when: a program that tries ports may say nothing, and
// keeps no rank waiting.
class Callers {
 public:
  Callers(const Launch& launch, const Socket& listener)
      : launch_(launch),
        listener_(listener),
        most_of_an_address_(lines * static_cast<std::size_t>(launch.size) + unrelated_of_an_address) {}

  struct Introduced {
    Hello hello;
    Socket socket;
  };
  // Those that have said that they are ranks of this training, after waiting for that long at most. Others are closed:
  // where they say something else, or nothing for some seconds.
  std::vector<Introduced> introduced_within(double seconds) {
    std::vector<const Socket*> sockets{&listener_};
    for (const Caller& caller : callers_) sockets.push_back(&caller.socket);
    const std::vector<bool> readable = readable_within(sockets, std::min(seconds, 0.5));
    std::vector<Introduced> introduced;
    std::vector<Caller> still;
    for (std::size_t i = 0; i < callers_.size(); ++i) {
      Caller& caller = callers_[i];
      const bool may_go_on = !readable[i + 1] || listen_to(caller);
      if (may_go_on && caller.said.size() == whole_size())
        introduced.push_back({hello_in(caller), std::move(caller.socket)});
      else if (may_go_on && caller.deadline.left() > 0)
        still.push_back(std::move(caller));
    }
    callers_ = std::move(still);
    if (readable[0]) let_in();
    return introduced;
  }

 private:
  static constexpr std::size_t unrelated_of_an_address = 64;

  std::size_t whole_size() const { return sizeof(Hello) + launch_.token.size(); }

  static Hello hello_in(const Caller& caller) {
    Hello hello;
    std::memcpy(&hello, caller.said.data(), sizeof hello);
    return hello;
  }

  // False if the caller is not a rank of this training: another program, or a rank of another one.
  bool listen_to(Caller& caller) const {
    if (!receive_available(caller.socket, caller.said, whole_size() - caller.said.size())) return false;
    if (caller.said.size() < sizeof(Hello)) return true;
    const Hello hello = hello_in(caller);
    return std::memcmp(hello.word, Hello().word, sizeof hello.word) == 0 &&
           hello.token_size == static_cast<std::int32_t>(launch_.token.size()) &&
           launch_.token.starts_with(std::string_view(caller.said).substr(sizeof hello));
  }

  // One that has many connections loses the oldest: a rank says at once who it is, and all of a host's may come at
  // once.
  void let_in() {
    std::optional<Socket> socket = accept_within(listener_, 0);
    if (!socket) return;
    callers_.push_back({*std::move(socket)});
    const std::string& address = callers_.back().address;
    const auto is_of_it = [&](const Caller& caller) { return caller.address == address; };
    if (static_cast<std::size_t>(std::count_if(callers_.begin(), callers_.end(), is_of_it)) > most_of_an_address_)
      callers_.erase(std::find_if(callers_.begin(), callers_.end(), is_of_it));
  }

  const Launch& launch_;
  const Socket& listener_;
  std::size_t most_of_an_address_;
  std::vector<Caller> callers_;  // the oldest first
};

void take_in(RankLines& all, const Launch& launch, const Hello& hello, Socket socket) {
  const bool fits = hello.size == launch.size && hello.rank > 0 && hello.rank < launch.size && hello.line >= 0 &&
                    hello.line < static_cast<std::int32_t>(lines);
  Socket* const place =
      fits ? &line_of(all, static_cast<std::size_t>(hello.line))[static_cast<std::size_t>(hello.rank - 1)] : nullptr;
  if (place == nullptr || place->open())
    throw Error(
        ErrorKind::device,
        join("rank ", hello.rank, " of ", hello.size, place == nullptr ? " connected to " : " connected twice to ",
             to_string(launch.rendezvous), ", which expects ", launch.size,
             " ranks: it belongs to another training.\n  Give each training a different MASTER_PORT"));
  *place = std::move(socket);
}

RankLines wait_for_others(const Launch& launch, double patience) {
  RankLines all;
  const auto others = static_cast<std::size_t>(launch.size - 1);
  for (std::size_t line = 0; line < lines; ++line) line_of(all, line).resize(others);
  const Socket listener = listen_at(launch.rendezvous);
  const Deadline deadline(patience);
  Callers callers(launch, listener);
  for (std::size_t come = 0; come < lines * others;) {
    if (deadline.left() <= 0) throw Error(ErrorKind::device, missing_text(all, launch, patience));
    for (Callers::Introduced& rank : callers.introduced_within(deadline.left())) {
      take_in(all, launch, rank.hello, std::move(rank.socket));
      ++come;
    }
  }
  for (std::size_t line = 0; line < lines; ++line)
    for (const Socket& socket : line_of(all, line)) send_bytes(socket, &here, 1, [&] { return deadline.left() > 0; });
  return all;
}

Socket connect_within(const SocketPlace& place, const Deadline& deadline, double patience) {
  do {
    if (std::optional<Socket> socket = connect_to(place)) return *std::move(socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // rank 0 may not have begun yet
  } while (deadline.left() > 0);
  throw Error(ErrorKind::device, join("rank 0 does not answer at ", to_string(place), " for ", patience,
                                      " s\n  Is it started, and can this machine reach it there?"));
}

RankLines go_to_rank_0(const Launch& launch, double patience) {
  RankLines all;
  const Deadline deadline(patience);
  const auto in_time = [&] { return deadline.left() > 0; };
  for (std::size_t line = 0; line < lines; ++line) {
    Socket socket = connect_within(launch.rendezvous, deadline, patience);
    Hello hello;
    hello.rank = launch.rank, hello.size = launch.size, hello.line = static_cast<std::int32_t>(line);
    hello.token_size = static_cast<std::int32_t>(launch.token.size());
    send_bytes(socket, &hello, sizeof hello, in_time);
    send_bytes(socket, launch.token.data(), launch.token.size(), in_time);
    line_of(all, line).push_back(std::move(socket));
  }
  for (std::size_t line = 0; line < lines; ++line) {
    char answer = 0;
    if (receive_bytes(line_of(all, line).front(), &answer, 1, in_time) != Transfer::done || answer != here)
      throw Error(ErrorKind::device, join(to_string(launch.rendezvous),
                                          " did not accept this rank: rank 0 exited, other ranks are "
                                          "missing, or another program has the port (set another MASTER_PORT)"));
  }
  return all;
}

}  // namespace

RankLines connect_ranks(const Launch& launch, double patience) {
  // Rank 0 has a shorter timeout than the others, so that it reports which ranks are missing.
  return launch.rank == 0 ? wait_for_others(launch, patience) : go_to_rank_0(launch, 1.1 * patience);
}

}  // namespace twiddle
