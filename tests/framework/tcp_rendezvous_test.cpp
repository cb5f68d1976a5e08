#include "framework/ranks/tcp_rendezvous.h"

#include <gtest/gtest.h>

#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

TEST(TcpRendezvous, ConnectsEachRankToFirst) {
  on_ranks(3, [](const std::shared_ptr<Communicator>& ranks) {
    const RankLines lines = tcp_rendezvous(*ranks, 60);
    const auto number = static_cast<char>('0' + ranks->rank());
    if (ranks->rank() > 0) {
      ASSERT_EQ(lines.life.size(), 1u);
      EXPECT_EQ(send_bytes(lines.life[0], &number, 1, [] { return true; }), Transfer::done);
    } else {
      ASSERT_EQ(lines.life.size(), 2u);
      for (char rank = '1'; rank <= '2'; ++rank) {
        char received = 0;
        receive_bytes(lines.life[static_cast<std::size_t>(rank - '1')], &received, 1, [] { return true; });
        EXPECT_EQ(received, rank);
      }
    }
    ranks->barrier();
  });
}

// A usable network interface may be listed after a link-local one.
TEST(TcpRendezvous, AddressesAreNumbers) {
  for (const std::string& address : addresses_of_machine())
    EXPECT_EQ(address.substr(0, address.find('%')).find_first_not_of("0123456789abcdef.:"), std::string::npos)
        << address;
}

}  // namespace
}  // namespace twiddle
