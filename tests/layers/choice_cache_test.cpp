#include "layers/conv/choice_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

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
      for (const char* key : {"one", "two"})
        EXPECT_FALSE(read.find(key) && (read.find(key)->choice.empty() || !(read.find(key)->milliseconds >= 0)));
    }
}

TEST(ChoiceCache, ForeignFilesAndNumbersAreIgnored) {
  const std::string path = fresh_path("foreign");
  ChoiceCache(path).store("one", {"gemm", 1});
  const std::string first_line = contents(path).substr(0, contents(path).find('\n') + 1);
  std::ofstream(path) << "something else\ngemm\t1\tone\n";
  EXPECT_FALSE(ChoiceCache(path).find("one"));
  for (const char* number : {"", "-1", "nan", "inf", "1x", "0x"}) {
    std::ofstream(path) << first_line << "gemm\t" << number << "\tone\n";
    EXPECT_FALSE(ChoiceCache(path).find("one")) << number;
  }
  EXPECT_FALSE(ChoiceCache(testing::TempDir()).find("one"));  // a folder
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

  std::ofstream(path) << "somebody's letter\n";
  ChoiceCache(path, warn).store("three", {"gemm", 3});
  EXPECT_EQ(contents(path + ".old"), "somebody's letter\n");
  EXPECT_TRUE(ChoiceCache(path, warn).find("three"));
  EXPECT_EQ(warnings.size(), 2u);
  std::filesystem::remove(path + ".old");
}

TEST(ChoiceCache, WithoutAFileNothingIsKept) {
  ChoiceCache cache("");
  cache.store("one", {"gemm", 1});
  EXPECT_FALSE(cache.find("one"));
}

}  // namespace twiddle
