#include "apps/run_folder/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "apps/version.h"
#include "data/images/decoders.h"
#include "framework/error.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

TEST(RunFolder, NumbersRunsFromHighest) {
  const fs::path out = fresh_folder("runs");
  EXPECT_EQ(make_run_folder(out, "net"), (out / "net-001").string());
  fs::create_directory(out / "net-041");
  fs::create_directory(out / "net-wide-090");
  EXPECT_EQ(make_run_folder(out, "net"), (out / "net-042").string());
  EXPECT_EQ(make_run_folder(out, "a/b c"), (out / "a_b_c-001").string());
}

TEST(RunFolder, AcceptsUnicodeNames) {
  const fs::path out = fresh_folder("languages");
  EXPECT_EQ(make_run_folder(out, "Näme mit ☃"), (out / "Näme_mit_☃-001").string());
  EXPECT_EQ(make_run_folder(out, "lat\xe9"), (out / "lat_-001").string());
}

TEST(RunFolder, NameNeverStartsWithDash) {
  const fs::path out = fresh_folder("flags");
  EXPECT_EQ(make_run_folder(out, "-rf"), (out / "run-rf-001").string());
  EXPECT_EQ(make_run_folder(out, ""), (out / "run-001").string());
  EXPECT_EQ(make_run_folder(out, ".hidden"), (out / "run.hidden-001").string());
}

TEST(RunFolder, ConcurrentRunsGetSeparateFolders) {
  const fs::path out = fresh_folder("race");
  std::vector<std::string> folders(16);
  std::vector<std::thread> threads;
  for (std::string& folder : folders) threads.emplace_back([&] { folder = make_run_folder(out, "net"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(folders.begin(), folders.end()).size(), folders.size());
}

TEST(RunFolder, UnusedFolderIsRemovedWithParents) {
  const fs::path out = fresh_folder("nothing");
  { const NewFolder folder((out / "deep" / "runs/").string(), "net"); }
  EXPECT_TRUE(fs::is_empty(out));
  NewFolder kept((out / "runs").string(), "net");
  kept.keep();
  { const NewFolder folder((out / "runs").string(), "net"); }
  EXPECT_TRUE(fs::exists(kept.path()));
  EXPECT_FALSE(fs::exists(out / "runs" / "net-002"));
}

TEST(RunFolder, FailsIfPathIsFile) {
  const fs::path out = fresh_folder("file");
  std::ofstream(out / "runs") << "a file";
  EXPECT_THROW(make_run_folder(out / "runs", "net"), Error);
}

TEST(RunFolder, RestoresConfigAndItsOrigin) {
  const fs::path folder = fresh_folder("facts");
  const Config config = load_experiment("models/digits.yaml", {{"train.epochs", "3", "--epochs"}}).config;
  write_run_facts(folder, config, "cpu");
  const Config back = load_run(folder, {{"train.epochs", "4", "--epochs"}}).config;
  EXPECT_EQ(back.name, "digits");
  EXPECT_EQ(back.file, fs::absolute("models/digits.yaml").string());
  EXPECT_EQ(config_changes(config.tree, back.tree), std::vector<std::string>{"train.epochs: 3 -> 4"});
  EXPECT_EQ(config_changes(back.tree_of_file, back.tree), std::vector<std::string>{"train.epochs: 3 -> 4"});
  EXPECT_TRUE(is_run_folder(folder));
}

TEST(RunFolder, RefusesPipeInsteadOfFile) {
  const fs::path run = fresh_folder("pipe");
  std::ofstream(run / "config.yaml") << "version: 1\nmodel: {input: [1, 4, 4], layers: [linear: {outputs: 2}]}\n";
  EXPECT_EQ(load_run(run).config.name, "config");
  for (const char* name : {"environment.json", "train.log", "metrics.jsonl"}) {
    ASSERT_EQ(mkfifo((run / name).c_str(), 0600), 0);
    EXPECT_THROW(load_run(run), Error) << name;
    fs::remove(run / name);
  }
}

TEST(RunFolder, PathCannotInjectConfigKeys) {
  const fs::path folder = fresh_folder("injection"), model = folder / "new\nbase: evil.yaml #\x1b.yaml";
  fs::copy_file("models/digits.yaml", model);
  write_run_facts(folder, load_experiment(model).config, "cpu");
  const std::string first_line =
      read_text(folder / "config.yaml").substr(0, read_text(folder / "config.yaml").find('\n'));
  EXPECT_NE(first_line.find("/new\uFFFDbase: evil.yaml #\uFFFD.yaml"), std::string::npos) << first_line;
  EXPECT_EQ(load_run(folder).config.file, model.string());
}

TEST(RunFolder, AcceptsConfigNameWithInvalidUtf8) {
  const fs::path folder = fresh_folder("latin"), model = folder / "lat\xe9.yaml";
  fs::copy_file("models/digits.yaml", model);
  write_run_facts(folder, load_experiment(model).config, "cpu");
  EXPECT_EQ(load_run(folder).config.name, "lat\uFFFD");
}

TEST(RunFolder, EnvironmentNamesCommitAndJpegReader) {
  const fs::path folder = fresh_folder("environment");
  write_run_facts(folder, load_experiment("models/digits.yaml").config, "cpu");
  const auto environment = nlohmann::json::parse(read_text(folder / "environment.json"));
  EXPECT_EQ(environment.value("commit", ""), commit());
  const std::string hash = commit().substr(0, commit().find("-dirty"));
  EXPECT_TRUE(hash.empty() || hash.size() >= 7) << commit();
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << commit();
  EXPECT_EQ(environment.value("jpeg_reader", ""), jpeg_reader());
}

TEST(RunFolder, ResumeRecognizesRunFolders) {
  const fs::path folder = fresh_folder("resume");
  EXPECT_THROW(find_resume_point(folder), Error);
  write_run_facts(folder, load_experiment("models/digits.yaml").config, "cpu");
  EXPECT_THROW(find_resume_point(folder), Error);  // no checkpoint yet
}

}  // namespace
}  // namespace twiddle
