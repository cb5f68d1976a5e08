#include "apps/run_folder/own_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/error.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

class OwnFile : public testing::Test {
 protected:
  OwnFile() : folder_(fresh_folder("own_file")), path_((folder_ / "train.log").string()) {
    std::ofstream(folder_ / "precious") << "text";
  }
  ~OwnFile() override { fs::remove_all(folder_); }

  std::string refusal() const {
    try {
      append_to_own_file(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(OwnFile, CreatesAndAppends) {
  for (const char* text : {"one ", "two"}) std::fputs(text, append_to_own_file(path_).get());
  EXPECT_EQ(read_text(path_), "one two");
}

TEST_F(OwnFile, RefusesLink) {
  fs::create_symlink("precious", path_);
  EXPECT_NE(refusal().find("it is a link"), std::string::npos) << refusal();
  fs::remove(path_);
  fs::create_hard_link(folder_ / "precious", path_);
  EXPECT_NE(refusal().find("it is a link"), std::string::npos) << refusal();
  EXPECT_EQ(read_text(folder_ / "precious"), "text");
}

TEST_F(OwnFile, RefusesPipeAndDevice) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("it is not a regular file"), std::string::npos) << refusal();
  path_ = "/dev/null";
  EXPECT_NE(refusal().find("it is not a regular file"), std::string::npos) << refusal();
}

// Files that another user may have put into a run folder.
class ForeignRun : public testing::Test {
 protected:
  ForeignRun() : out_(fresh_folder("foreign_run")), run_(out_ / "digits-001") {
    const std::vector<std::string> train{"train", "models/digits.yaml", "--out", out_.string(), "--epochs",
                                         "1",     "--limit-batches",    "2"};
    EXPECT_EQ(run_program(train).code, 0);
    std::ofstream(out_ / "precious") << "text\n";
  }
  ~ForeignRun() override { fs::remove_all(out_); }

  Finished resume() const {
    return run_program({"train", "--resume", run_.string(), "--epochs", "2", "--limit-batches", "2"});
  }

  fs::path out_, run_;
};

TEST_F(ForeignRun, DoesNotWriteThroughLink) {
  for (const char* name : {"train.log", ".lock"}) {
    fs::rename(run_ / name, out_ / name);
    fs::create_symlink("../precious", run_ / name);
    const Finished refused = resume();
    EXPECT_EQ(refused.code, 1) << name;
    EXPECT_NE(refused.err.find("it is a link"), std::string::npos) << refused.err;
    fs::rename(out_ / name, run_ / name);
  }
  const std::vector<std::string> replaced{"metrics.jsonl", "metrics.csv",      "report.html",     "best.json",
                                          "config.yaml",   "environment.json", "best.safetensors"};
  fs::create_directory(out_ / "linked");
  for (const std::string& name : replaced) {
    fs::rename(run_ / name, out_ / "linked" / name);
    fs::create_symlink("../linked/" + name, run_ / name);
  }
  std::vector<std::string> before, after;
  for (const std::string& name : replaced) before.push_back(read_text(out_ / "linked" / name));
  const Finished resumed = resume();
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  for (const std::string& name : replaced) after.push_back(read_text(out_ / "linked" / name));
  EXPECT_EQ(before, after);
  EXPECT_EQ(read_text(out_ / "precious"), "text\n");
}

TEST_F(ForeignRun, DoesNotRemoveCheckpointsThroughLink) {
  fs::create_directory(out_ / "mine");
  fs::rename(run_ / "checkpoints", out_ / "mine" / "checkpoints");
  fs::create_directory_symlink("../mine/checkpoints", run_ / "checkpoints");
  const Finished refused = resume();
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("/checkpoints' is a link to another folder"), std::string::npos) << refused.err;
  EXPECT_TRUE(fs::exists(out_ / "mine" / "checkpoints" / "step-00000002"));
}

}  // namespace
}  // namespace twiddle
