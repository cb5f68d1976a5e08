#include "framework/ranks/rank_texts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "framework/error.h"

namespace twiddle {
namespace {

constexpr double patience = 60;

Launch launch_at(int rank, int size, int port) {
  return {rank, size, rank, "a test", {"127.0.0.1", port}, "its token"};
}

// Runs `work` on `size` ranks, each a thread with its own connections.
void on_connected_ranks(int size, const std::function<void(int rank, RankTexts& texts)>& work) {
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      RankTexts texts(rank, std::move(connect_ranks(launch_at(rank, size, port), patience).texts));
      work(rank, texts);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(RankTexts, GathersInRankOrder) {
  on_connected_ranks(3, [](int rank, RankTexts& texts) {
    const auto of = [](int one) { return std::string(static_cast<std::size_t>(1000 * one), 'a') + '\0'; };
    const auto all = texts.gather(of(rank), {}, {});
    ASSERT_TRUE(all.has_value());
    EXPECT_EQ(*all, (std::vector<std::string>{of(0), of(1), of(2)}));
    EXPECT_EQ(texts.gather("", {}, {}), std::vector<std::string>(3));
  });
}

// More than the system buffers for a connection whose other end does not read.
TEST(RankTexts, GathersLongStrings) {
  on_connected_ranks(3, [](int rank, RankTexts& texts) {
    const std::string text(std::size_t(20) << 20, static_cast<char>('a' + rank));
    const auto all = texts.gather(text, {}, {});
    ASSERT_TRUE(all.has_value());
    EXPECT_TRUE((*all)[static_cast<std::size_t>(rank)] == text);
  });
}

// As from a rank that sends invalid data.
TEST(RankTexts, NamesSizeIfOutOfMemory) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Socket other(ends[1]);
  RankLine line;
  line.emplace_back(ends[0]);
  const std::uint64_t size = std::uint64_t(1) << 62;
  ASSERT_EQ(send_bytes(other, &size, sizeof size, [] { return true; }), Transfer::done);
  try {
    RankTexts(0, std::move(line)).gather("", {}, {});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no memory for 4611686018427387904 bytes"), std::string::npos)
        << error.what();
  }
}

TEST(RankTexts, ReportsWaitingTime) {
  on_connected_ranks(2, [](int rank, RankTexts& texts) {
    double waited = 0;
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    texts.gather("", {}, [&](double seconds) { waited = seconds; });
    EXPECT_GT(waited, rank == 0 ? 0.05 : -1);
  });
}

TEST(RankTexts, StopsWaitingAfterTimeout) {
  on_connected_ranks(2, [](int rank, RankTexts& texts) {
    if (rank == 0) {
      EXPECT_EQ(texts.gather("", 0.1, {}), std::nullopt);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  });
}

TEST(RankTexts, StopsWaitingIfRankExits) {
  on_connected_ranks(2, [](int rank, RankTexts& texts) {
    if (rank == 0) {
      EXPECT_EQ(texts.gather("", {}, {}), std::nullopt);
    }
  });
}

std::string message_of(const Launch& launch, double seconds) {
  try {
    connect_ranks(launch, seconds);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
  return "";
}

TEST(ConnectingRanks, ReportMissingRanks) {
  const std::string message = message_of(launch_at(0, 3, free_port()), 0.1);
  EXPECT_NE(message.find("did not connect to 127.0.0.1:"), std::string::npos) << message;
  EXPECT_NE(message.find("within 0.1 s: 1, 2"), std::string::npos) << message;
}

TEST(ConnectingRanks, ReportPortInUse) {
  const int port = free_port();
  const Socket other = listen_at({"127.0.0.1", port});
  const std::string message = message_of(launch_at(0, 2, port), 1);
  EXPECT_NE(message.find("is in use"), std::string::npos) << message;
  EXPECT_NE(message.find("MASTER_PORT"), std::string::npos) << message;
}

TEST(ConnectingRanks, RefuseRankOfAnotherSize) {
  const int port = free_port();
  std::thread other([port] { message_of(launch_at(2, 4, port), 0.5); });
  const std::string message = message_of(launch_at(0, 2, port), patience);
  other.join();
  EXPECT_NE(message.find("rank 2 of 4 connected to"), std::string::npos) << message;
}

Socket client_of(int port) {
  std::optional<Socket> client;
  while (!(client = connect_to({"127.0.0.1", port}))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *std::move(client);
}

// An unrelated program that connects to ports or sends arbitrary data.
TEST(ConnectingRanks, IgnoreUnrelatedClient) {
  const int port = free_port();
  std::thread rank_0([port] { EXPECT_EQ(message_of(launch_at(0, 2, port), patience), ""); });
  const Socket client = client_of(port);
  const std::string text = "GET / HTTP/1.1\r\n\r\n longer than what a rank sends first";
  send_bytes(client, text.data(), text.size(), [] { return true; });
  EXPECT_EQ(message_of(launch_at(1, 2, port), patience), "");
  rank_0.join();
}

// Each of them could block for as long as the limit for all ranks.
TEST(ConnectingRanks, AcceptRanksWhileOthersAreSilent) {
  constexpr double seconds = 4;
  const int port = free_port();
  std::thread rank_0([port] { EXPECT_EQ(message_of(launch_at(0, 2, port), seconds), ""); });
  std::vector<Socket> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(client_of(port));
  EXPECT_EQ(message_of(launch_at(1, 2, port), seconds), "");
  rank_0.join();
}

TEST(ConnectingRanks, CloseOldestConnectionOfOneAddress) {
  const int port = free_port();
  std::thread rank_0([port] { EXPECT_EQ(message_of(launch_at(0, 2, port), patience), ""); });
  std::vector<Socket> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(client_of(port));
  const auto start = std::chrono::steady_clock::now();
  char byte = 0;
  EXPECT_EQ(receive_bytes(clients.front(), &byte, 1, [] { return true; }), Transfer::closed);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));  // before it is closed for its silence
  EXPECT_EQ(message_of(launch_at(1, 2, port), patience), "");
  rank_0.join();
}

// It uses the protocol of a rank and could replace one.
TEST(ConnectingRanks, RejectAnotherToken) {
  const int port = free_port();
  std::thread rank_0([port] { EXPECT_EQ(message_of(launch_at(0, 2, port), patience), ""); });
  for (const char* token : {"", "its tokem", "another token"}) {
    Launch other = launch_at(1, 2, port);
    other.token = token;
    const std::string message = message_of(other, patience);
    EXPECT_NE(message.find("did not accept this rank"), std::string::npos) << message;
  }
  EXPECT_EQ(message_of(launch_at(1, 2, port), patience), "");
  rank_0.join();
}

// During its lifetime, this process cannot open more files.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = open("/dev/null", O_RDONLY);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST(Sockets, ReportTooManyOpenFiles) {
  const int port = free_port();
  const Socket listener = listen_at({"127.0.0.1", port});
  const std::optional<Socket> caller = connect_to({"127.0.0.1", port});
  ASSERT_TRUE(caller.has_value());
  {
    const NoMoreFiles full;
    EXPECT_THROW(accept_within(listener, 5), Error);
  }
  EXPECT_TRUE(accept_within(listener, 5).has_value());
}

}  // namespace
}  // namespace twiddle
