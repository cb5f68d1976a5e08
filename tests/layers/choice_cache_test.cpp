#include "layers/conv/choice_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "framework/error.h"

namespace twiddle {

namespace {

std::string fresh_path(const std::string& name) {
  const std::string path = testing::TempDir() + "twiddle_" + name + "_" + std::to_string(getpid()) + ".txt";
  std::filesystem::remove(path);
  return path;
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST(ChoiceCache, KeepsWhatItWasTold) {
  const std::string path = fresh_path("kept");
  ChoiceCache first(path);
  EXPECT_FALSE(first.find("a problem"));
  first.store("a problem", {"gemm", 1.25});
  ChoiceCache(path).store("another\tproblem", {"onednn", 0.5});
  first.store("a third", {"direct", 3});  // without losing the one that someone else stored

  ChoiceCache again(path);
  ASSERT_TRUE(again.find("a problem") && again.find("another\tproblem") && again.find("a third"));
  EXPECT_EQ(again.find("a problem")->choice, "gemm");
  EXPECT_EQ(again.find("a problem")->milliseconds, 1.25);
  EXPECT_EQ(again.find("another\tproblem")->choice, "onednn");
}

TEST(ChoiceCache, RetuningForgetsAndStores) {
  const std::string path = fresh_path("retuned");
  ChoiceCache(path).store("one", {"gemm", 1});
  ChoiceCache(path).store("two", {"gemm", 2});
  ChoiceCache retuned(path, {}, true);
  retuned.store("two", {"onednn", 1});
  EXPECT_FALSE(retuned.find("one") || retuned.find("two"));
  ChoiceCache read(path);
  ASSERT_TRUE(read.find("one") && read.find("two"));
  EXPECT_EQ(read.find("one")->choice, "gemm");
  EXPECT_EQ(read.find("two")->choice, "onednn");
}

TEST(ChoiceCache, DamageIsNeverFatal) {
  const std::string path = fresh_path("damaged");
  ChoiceCache cache(path);
  cache.store("one", {"gemm", 1});
  cache.store("two", {"onednn", 2});
  const std::string whole = contents(path);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const std::string& damaged : {whole.substr(0, at), whole.substr(0, at) + '\x01' + whole.substr(at + 1),
                                       whole.substr(0, at) + '\n' + whole.substr(at)}) {
      std::ofstream(path) << damaged;
      ChoiceCache read(path);
      if (!damaged.empty() && !damaged.starts_with("# twiddle convolution choices ")) {
        EXPECT_THROW(read.find("one"), Error);  // who is to say what it was?
        EXPECT_EQ(contents(path), damaged);
        continue;
      }
      for (const char* key : {"one", "two"})
        EXPECT_FALSE(read.find(key) && (read.find(key)->choice.empty() || !(read.find(key)->milliseconds >= 0)));
    }
}

TEST(ChoiceCache, NoOtherFileIsEverReplaced) {
  const std::string path = fresh_path("letter");
  std::ofstream(path) << "somebody's letter\n";
  std::ofstream(path + ".old") << "an older one\n";
  const auto refusal = [](const std::string& file, bool storing) -> std::string {
    try {
      ChoiceCache cache(file);
      storing ? cache.store("one", {"gemm", 1}) : static_cast<void>(cache.find("one"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    return "";
  };
  for (const bool storing : {false, true}) {
    EXPECT_EQ(refusal(path, storing),
              "convolution.cache names " + path +
                  ", which is no cache of Twiddle's: its first line must begin with "
                  "'# twiddle convolution choices '. It is left as it is; name another file, or `off`");
    EXPECT_NE(refusal(testing::TempDir(), storing), "") << "a folder";
    EXPECT_NE(refusal("/dev/null", storing), "");
  }
  EXPECT_EQ(contents(path), "somebody's letter\n");
  EXPECT_EQ(contents(path + ".old"), "an older one\n");
  std::filesystem::remove(path + ".old");
}

TEST(ChoiceCache, ATemporaryFileFollowsNoLink) {
  const std::string path = fresh_path("linked"), precious = fresh_path("precious");
  std::ofstream(precious) << "precious";
  std::filesystem::create_symlink(precious, path + "." + std::to_string(getpid()) + ".tmp");
  ChoiceCache(path).store("one", {"gemm", 1});
  EXPECT_TRUE(ChoiceCache(path).find("one"));
  EXPECT_EQ(contents(precious), "precious");
}

TEST(ChoiceCache, AnotherVersionsFileIsReplaced) {
  const std::string path = fresh_path("version");
  std::vector<std::string> warnings;
  std::ofstream(path) << "# twiddle convolution choices 0\ngemm\t1\tone\n";
  ChoiceCache cache(path, [&](const std::string& text) { warnings.push_back(text); });
  EXPECT_FALSE(cache.find("one"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("of another version"), std::string::npos) << warnings[0];
  cache.store("one", {"gemm", 1});
  EXPECT_TRUE(ChoiceCache(path).find("one"));
}

TEST(ChoiceCache, ABuildKnowsItsOwnChoicesAlone) {
  const std::string path = fresh_path("builds");
  ChoiceCache(path, {}, false, "fe1576e1f0c2").store("one", {"gemm", 1});
  EXPECT_TRUE(ChoiceCache(path, {}, false, "fe1576e1f0c2").find("one"));
  EXPECT_FALSE(ChoiceCache(path, {}, false, "0b56871b0b56").find("one"));
  EXPECT_FALSE(ChoiceCache(path).find("one"));
  ChoiceCache(path, {}, false, "0b56871b0b56").store("one", {"onednn", 1});
  EXPECT_EQ(ChoiceCache(path, {}, false, "fe1576e1f0c2").find("one")->choice, "gemm") << "both are kept";
}

TEST(ChoiceCache, SaysWhereNothingCouldBeWritten) {
  std::vector<std::string> warnings;
  ChoiceCache cache("/proc/none/choices.txt", [&](const std::string& text) { warnings.push_back(text); });
  for (const char* key : {"one", "two"}) cache.store(key, {"gemm", 1});
  EXPECT_NE(cache.write_failure(), "");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("cannot be written"), std::string::npos) << warnings[0];
  ChoiceCache written(fresh_path("written"));
  written.store("one", {"gemm", 1});
  EXPECT_EQ(written.write_failure(), "");
}

TEST(ChoiceCache, ForeignNumbersAreIgnored) {
  const std::string path = fresh_path("foreign");
  ChoiceCache(path).store("one", {"gemm", 1});
  const std::string first_line = contents(path).substr(0, contents(path).find('\n') + 1);
  for (const char* number : {"", "-1", "nan", "inf", "1x", "0x"}) {
    std::ofstream(path) << first_line << "gemm\t" << number << "\tone\n";
    EXPECT_FALSE(ChoiceCache(path).find("one")) << number;
  }
}

TEST(ChoiceCache, WarnsOnceAndWritesAnew) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const std::string path = fresh_path("warned");
  ChoiceCache(path, warn).store("one", {"gemm", 1});
  EXPECT_TRUE(warnings.empty());
  std::ofstream(path, std::ios::app) << "half a li";
  ChoiceCache damaged(path, warn);
  EXPECT_TRUE(damaged.find("one"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("1 of its lines make no sense"), std::string::npos) << warnings[0];
  ChoiceCache(path, warn).find("one");
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(ChoiceCache, WithoutAFileNothingIsKept) {
  ChoiceCache cache("");
  cache.store("one", {"gemm", 1});
  EXPECT_FALSE(cache.find("one"));
}

}  // namespace twiddle
