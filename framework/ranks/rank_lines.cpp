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

// What a rank says first; behind it comes the token.
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
  return join("of ", launch.size, " ranks these have not come to ", to_string(launch.meeting), " within ", patience,
              " s: ", ranks, "\n  Are they started, and can their machines reach this one at that port?");
}

// Nothing where the caller is no rank of this training: another program that tries ports, or a rank of another one.
std::optional<Hello> hello_of(const Socket& socket, const std::string& token, const Deadline& deadline) {
  Hello hello;
  const Deadline soon(std::min(deadline.left(), 5.0));
  const auto receive = [&](void* bytes, std::size_t count) {
    return receive_bytes(socket, bytes, count, [&] { return soon.left() > 0; }) == Transfer::done;
  };
  if (!receive(&hello, sizeof hello) || std::memcmp(hello.word, Hello().word, sizeof hello.word) != 0) return {};
  std::string told(token.size(), ' ');
  if (hello.token_size != static_cast<std::int32_t>(token.size()) || !receive(told.data(), told.size())) return {};
  return told == token ? std::optional(hello) : std::nullopt;
}

void take_in(RankLines& all, const Launch& launch, const Hello& hello, Socket socket) {
  const bool fits = hello.size == launch.size && hello.rank > 0 && hello.rank < launch.size && hello.line >= 0 &&
                    hello.line < static_cast<std::int32_t>(lines);
  Socket* const place =
      fits ? &line_of(all, static_cast<std::size_t>(hello.line))[static_cast<std::size_t>(hello.rank - 1)] : nullptr;
  if (place == nullptr || place->open())
    throw Error(ErrorKind::device,
                join("rank ", hello.rank, " of ", hello.size, place == nullptr ? " has" : " has a second time",
                     " come to ", to_string(launch.meeting), ", where ", launch.size,
                     " ranks meet: it belongs to another training.\n  Give each one a MASTER_PORT of its own"));
  *place = std::move(socket);
}

RankLines wait_for_others(const Launch& launch, double patience) {
  RankLines all;
  const auto others = static_cast<std::size_t>(launch.size - 1);
  for (std::size_t line = 0; line < lines; ++line) line_of(all, line).resize(others);
  const Socket listener = listen_at(launch.meeting);
  const Deadline deadline(patience);
  for (std::size_t come = 0; come < lines * others;) {
    std::optional<Socket> socket = accept_within(listener, deadline.left());
    if (deadline.left() <= 0) throw Error(ErrorKind::device, missing_text(all, launch, patience));
    if (!socket) continue;
    const std::optional<Hello> hello = hello_of(*socket, launch.token, deadline);
    if (!hello) continue;
    take_in(all, launch, *hello, *std::move(socket));
    ++come;
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
    Socket socket = connect_within(launch.meeting, deadline, patience);
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
      throw Error(ErrorKind::device, join("what listens at ", to_string(launch.meeting),
                                          " has not let this rank in: it has ended, waits for others in vain, or is "
                                          "another training or program, and then another MASTER_PORT helps"));
  }
  return all;
}

}  // namespace

RankLines meet_ranks(const Launch& launch, double patience) {
  // Rank 0 waits a little less than the others, so that it is the one to tell who is missing.
  return launch.rank == 0 ? wait_for_others(launch, patience) : go_to_rank_0(launch, 1.1 * patience);
}

}  // namespace twiddle
