#include "layers/conv/tuner/choice_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>
#include <vector>

#include "framework/error.h"
#include "tests/support/temp_path.h"

namespace twiddle {

namespace {

std::string fresh_path(const std::string& name) {
  const std::string path = temp_path(name + ".txt");
  std::filesystem::remove(path);
  return path;
}

ChoiceKey key(const std::string& rest, int batch = 8) {
  return {batch, rest};
}

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST(ChoiceCache, StoresChoices) {
  const std::string path = fresh_path("kept");
  ChoiceCache first(path);
  EXPECT_FALSE(first.find(key("a problem")));
  first.store(key("a problem"), {"gemm", 1.25});
  ChoiceCache(path).store(key("another\tproblem"), {"onednn", 0.5});
  first.store(key("a third"), {"direct", 3});  // without losing the one that someone else stored

  ChoiceCache again(path);
  ASSERT_TRUE(again.find(key("a problem")) && again.find(key("another\tproblem")) && again.find(key("a third")));
  EXPECT_EQ(again.find(key("a problem"))->choice, "gemm");
  EXPECT_EQ(again.find(key("a problem"))->milliseconds, 1.25);
  EXPECT_EQ(again.find(key("another\tproblem"))->choice, "onednn");
}

TEST(ChoiceCache, RetuningReplacesChoices) {
  const std::string path = fresh_path("retuned");
  ChoiceCache(path).store(key("one"), {"gemm", 1});
  ChoiceCache(path).store(key("two"), {"gemm", 2});
  ChoiceCache retuned(path, {}, true);
  retuned.store(key("two"), {"onednn", 1});
  EXPECT_FALSE(retuned.find(key("one")) || retuned.find(key("two")));
  ChoiceCache read(path);
  ASSERT_TRUE(read.find(key("one")) && read.find(key("two")));
  EXPECT_EQ(read.find(key("one"))->choice, "gemm");
  EXPECT_EQ(read.find(key("two"))->choice, "onednn");
}

TEST(ChoiceCache, SurvivesAnyDamage) {
  const std::string path = fresh_path("damaged");
  ChoiceCache cache(path);
  cache.store(key("one"), {"gemm", 1});
  cache.store(key("two"), {"onednn", 2});
  const std::string whole = contents(path);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const std::string& damaged : {whole.substr(0, at), whole.substr(0, at) + '\x01' + whole.substr(at + 1),
                                       whole.substr(0, at) + '\n' + whole.substr(at)}) {
      std::ofstream(path) << damaged;
      ChoiceCache read(path);
      if (!damaged.empty() && !damaged.starts_with("# twiddle convolution choices ")) {
        EXPECT_FALSE(read.find(key("one")));  // who is to say what it was?
        EXPECT_EQ(contents(path), damaged);
        continue;
      }
      for (const char* rest : {"one", "two"}) {
        const auto found = read.find(key(rest));
        EXPECT_FALSE(found && (found->choice.empty() || !(found->milliseconds >= 0)));
      }
    }
}

TEST(ChoiceCache, DoesNotReplaceOtherFiles) {
  const std::string path = fresh_path("letter");
  std::ofstream(path) << "another file\n";
  std::ofstream(path + ".old") << "an older one\n";
  const std::string pipe = fresh_path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto failure = [](const std::string& file, bool storing) {
    std::string warning;
    ChoiceCache cache(file, [&](const std::string& text) { warning = text; });
    if (storing) cache.store(key("one"), {"gemm", 1});
    EXPECT_FALSE(cache.find(key("one"))) << file;
    EXPECT_NE(warning.find(cache.write_failure()), std::string::npos) << warning;
    return cache.write_failure();
  };
  for (const bool storing : {false, true}) {
    EXPECT_EQ(failure(path, storing), "'" + path +
                                          "' is not a choice cache of Twiddle: its first line must start with "
                                          "'# twiddle convolution choices '. It is left as it is; delete it or name "
                                          "another file");
    EXPECT_NE(failure(testing::TempDir(), storing), "") << "a folder";
    EXPECT_NE(failure("/dev/null", storing), "");
    EXPECT_NE(failure("/dev/zero", storing), "") << "a line that never ends";
    EXPECT_NE(failure(pipe, storing), "") << "a pipe without a writer";
  }
  EXPECT_EQ(contents(path), "another file\n");
  EXPECT_EQ(contents(path + ".old"), "an older one\n");
  std::filesystem::remove(path + ".old");
}

TEST(ChoiceCache, TemporaryFileFollowsNoLink) {
  const std::string path = fresh_path("linked"), precious = fresh_path("precious");
  std::ofstream(precious) << "precious";
  const std::filesystem::path whole(path);
  const std::string temporary =
      (whole.parent_path() / ("." + whole.filename().string() + ".tmp-" + std::to_string(getpid()))).string();
  std::filesystem::create_symlink(precious, temporary);
  ChoiceCache(path).store(key("one"), {"gemm", 1});
  EXPECT_TRUE(ChoiceCache(path).find(key("one")));
  EXPECT_EQ(contents(precious), "precious");
}

TEST(ChoiceCache, ReplacesFileOfAnotherVersion) {
  const std::string path = fresh_path("version");
  std::vector<std::string> warnings;
  std::ofstream(path) << "# twiddle convolution choices 0\ngemm\t1\tone\n";
  ChoiceCache cache(path, [&](const std::string& text) { warnings.push_back(text); });
  EXPECT_FALSE(cache.find(key("one")));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("of another version"), std::string::npos) << warnings[0];
  cache.store(key("one"), {"gemm", 1});
  EXPECT_TRUE(ChoiceCache(path).find(key("one")));
}

TEST(ChoiceCache, ReportsPathThatCannotBeWritten) {
  std::vector<std::string> warnings;
  ChoiceCache cache("/proc/none/choices.txt", [&](const std::string& text) { warnings.push_back(text); });
  for (const char* rest : {"one", "two"}) cache.store(key(rest), {"gemm", 1});
  EXPECT_NE(cache.write_failure(), "");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("is not kept, and the next run measures again: cannot write"), std::string::npos)
      << warnings[0];
  ChoiceCache written(fresh_path("written"));
  written.store(key("one"), {"gemm", 1});
  EXPECT_EQ(written.write_failure(), "");
}

TEST(ChoiceCache, IgnoresInvalidLines) {
  const std::string path = fresh_path("senseless");
  ChoiceCache(path).store(key("one"), {"gemm", 1});
  const std::string whole = contents(path), sense = "gemm\t1\tbatch 8\t";
  const std::size_t at = whole.find(sense);
  ASSERT_NE(at, std::string::npos) << whole;
  for (const char* begin :
       {"gemm\t\tbatch 8\t", "gemm\t-1\tbatch 8\t", "gemm\tnan\tbatch 8\t", "gemm\tinf\tbatch 8\t",
        "gemm\t1x\tbatch 8\t", "\t1\tbatch 8\t", "gemm\t1\tbatch 8x\t", "gemm\t1\tbatch\t", "gemm\t1\t"}) {
    std::ofstream(path) << std::string(whole).replace(at, sense.size(), begin);
    EXPECT_FALSE(ChoiceCache(path).find(key("one"))) << begin;
  }
}

TEST(ChoiceCache, WarnsOnceAndRewritesFile) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  const std::string path = fresh_path("warned");
  ChoiceCache(path, warn).store(key("one"), {"gemm", 1});
  EXPECT_TRUE(warnings.empty());
  std::ofstream(path, std::ios::app) << "half a li";
  ChoiceCache damaged(path, warn);
  EXPECT_TRUE(damaged.find(key("one")));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("1 of its lines make no sense"), std::string::npos) << warnings[0];
  ChoiceCache(path, warn).find(key("one"));
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(ChoiceCache, KeepsNothingWithoutFile) {
  ChoiceCache cache("");
  cache.store(key("one"), {"gemm", 1});
  EXPECT_FALSE(cache.find(key("one")));
}

TEST(ChoiceCache, ReusesBatchesOfHalfSize) {
  const std::string path = fresh_path("batches");
  ChoiceCache cache(path);
  for (const int batch : {4, 32, 128}) cache.store(key("one", batch), {"at " + std::to_string(batch), 1});
  cache.store(key("other", 64), {"another problem", 1});
  const auto found = [&](int batch) { return cache.find_other_batch(key("one", batch))->choice; };
  EXPECT_EQ(found(1), "at 4");
  EXPECT_EQ(found(5), "at 32") << "the next larger";
  EXPECT_EQ(found(64), "at 128");
  EXPECT_EQ(found(256), "at 128") << "half as large";
  EXPECT_FALSE(cache.find_other_batch(key("one", 257)));
  EXPECT_FALSE(cache.find_other_batch(key("one", std::numeric_limits<int>::max())));
  EXPECT_FALSE(cache.find_other_batch(key("a third", 8)));
  EXPECT_FALSE(ChoiceCache(path, {}, true).find_other_batch(key("one", 8))) << "everything is to be measured again";
}

TEST(ChoiceCache, ConcurrentWritersLoseNoEntries) {
  const std::string path = fresh_path("concurrent");
  constexpr int writers = 4, entries = 5;
  const auto rest = [](int writer, int i) { return std::to_string(writer) + " stores " + std::to_string(i); };
  std::vector<std::thread> all;
  for (int writer = 0; writer < writers; ++writer)
    all.emplace_back([&, writer] {
      for (int i = 0; i < entries; ++i) ChoiceCache(path).store(key(rest(writer, i)), {"gemm", 1});
    });
  for (std::thread& each : all) each.join();
  ChoiceCache cache(path);
  for (int writer = 0; writer < writers; ++writer)
    for (int i = 0; i < entries; ++i) EXPECT_TRUE(cache.find(key(rest(writer, i)))) << rest(writer, i);
}

TEST(ChoiceCache, WarnsIfLockIsNotReleased) {
  const std::string path = fresh_path("locked");
  ChoiceCache(path).store(key("one"), {"gemm", 1});
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  std::string warning;
  ChoiceCache cache(path, [&](const std::string& text) { warning = text; });
  cache.store(key("two"), {"gemm", 2});
  EXPECT_NE(warning.find("without a lock (another process has locked it)"), std::string::npos) << warning;
  EXPECT_EQ(cache.write_failure(), "");
  close(file);
  ChoiceCache read(path);
  EXPECT_TRUE(read.find(key("one")) && read.find(key("two")));
}

TEST(ChoiceCache, RemovesTemporaryFilesOfKilledWriters) {
  const std::filesystem::path path = fresh_path("killed");
  const std::filesystem::path left = path.parent_path() / ("." + path.filename().string() + ".tmp-1-2");
  std::ofstream(left) << "half a li";
  ChoiceCache(path.string()).store(key("one"), {"gemm", 1});
  EXPECT_FALSE(std::filesystem::exists(left));
}

}  // namespace twiddle
