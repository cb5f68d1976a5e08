#include "framework/ranks/communicator.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "framework/interrupted.h"
#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

using Ranks = std::shared_ptr<Communicator>;

TEST(Communicator, SingleRankKeepsValues) {
  const auto stream = make_stream({});
  const auto alone = make_one_rank();
  float values[] = {1, 2};
  alone->all_reduce(*stream, values, 2);
  EXPECT_EQ(values[1], 2);
  EXPECT_EQ(alone->gather("text"), std::vector<std::string>{"text"});
  EXPECT_TRUE(any(*alone, true));
  EXPECT_FALSE(any(*alone, false));
  EXPECT_EQ(gather_or_fail(*alone, [] { return "made"; }), std::vector<std::string>{"made"});
}

TEST(Communicator, AnyIsTrueIfOneIs) {
  on_ranks(3, [](const Ranks& ranks) {
    EXPECT_TRUE(any(*ranks, ranks->rank() == 1));
    EXPECT_FALSE(any(*ranks, false));
  });
}

std::string failure_of(const std::function<std::string(int rank)>& make, ErrorKind kind) {
  std::string text;
  on_ranks(2, [&](const Ranks& ranks) {
    try {
      gather_or_fail(*ranks, [&] { return make(ranks->rank()); });
      ADD_FAILURE() << "nothing was thrown on rank " << ranks->rank();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      if (ranks->rank() == 0) text = error.what();
    }
  });
  return text;
}

TEST(Communicator, AllRanksFailIfOneFails) {
  const auto fails_on_rank_1 = [](int rank) -> std::string {
    if (rank == 1) throw Error(ErrorKind::data, "no such file");
    return "fine";
  };
  EXPECT_EQ(failure_of(fails_on_rank_1, ErrorKind::data), "rank 1: no such file");
}

TEST(Communicator, ReportsSharedFailureOnce) {
  const auto fails = [](int) -> std::string { throw Error(ErrorKind::config, "no such key"); };
  EXPECT_EQ(failure_of(fails, ErrorKind::config), "no such key");
}

TEST(Communicator, StopsAllIfOneIsStopped) {
  on_ranks(2, [](const Ranks& ranks) {
    const auto make = [&]() -> std::string {
      if (ranks->rank() == 1) throw Interrupted("stopped at 3 of 5");
      return "";
    };
    try {
      gather_or_fail(*ranks, make);
      ADD_FAILURE() << "nothing was thrown on rank " << ranks->rank();
    } catch (const Interrupted& stopped) {
      EXPECT_STREQ(stopped.what(), "stopped at 3 of 5");
    }
  });
}

TEST(Communicator, GathersEmptyStrings) {
  on_ranks(2, [](const Ranks& ranks) {
    EXPECT_EQ(gather_or_fail(*ranks, [] { return std::string(); }), (std::vector<std::string>(2)));
  });
}

}  // namespace
}  // namespace twiddle
