#include "framework/ranks/pack.h"

#include <gtest/gtest.h>

#include <functional>

#include "framework/error.h"

namespace twiddle {
namespace {

using Numbers = std::vector<double>;
using Strings = std::vector<std::string>;

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Pack, ReturnsWhatWasPacked) {
  const Numbers numbers{1.5, -0.1};
  const Strings strings{"", std::string("a\0\n b", 5)};
  const auto [flag, count, some, none, texts, text] = unpack<bool, int, Numbers, Numbers, Strings, std::string>(
      pack(true, -3, numbers, Numbers(), strings, strings[1]));
  EXPECT_TRUE(flag);
  EXPECT_EQ(count, -3);
  EXPECT_EQ(some, numbers);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(texts, strings);
  EXPECT_EQ(text, strings[1]);
}

TEST(Pack, RefusesEveryTruncatedMessage) {
  const std::string whole = pack(7, Numbers{1, 2}, Strings{"ab", "c"});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto work = [&] { unpack<int, Numbers, Strings>(whole.substr(0, size)); };
    EXPECT_NE(refusal(work).find(join("a message of ", size, " bytes from another rank is shorter")),
              std::string::npos);
  }
}

TEST(Pack, RefusesLongerMessage) {
  EXPECT_NE(refusal([] { unpack<int>(pack(1, 2)); }).find("a message of 8 bytes from another rank is longer"),
            std::string::npos);
}

// Refused before any memory is allocated for them.
TEST(Pack, RefusesImpossibleLengths) {
  const std::string endless = pack(~std::uint64_t(0));
  EXPECT_NE(refusal([&] { unpack<Numbers>(endless); }), "none");
  EXPECT_NE(refusal([&] { unpack<std::string>(endless); }), "none");
  EXPECT_NE(refusal([&] { unpack<Strings>(endless); }), "none");
}

}  // namespace
}  // namespace twiddle
