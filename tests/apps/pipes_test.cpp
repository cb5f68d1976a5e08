#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// A pipe without a writer: opening it would block forever.
class Pipes : public testing::Test {
 protected:
  Pipes() : folder_(fresh_folder("pipes")), pipe_((folder_ / "pipe").string()) {
    if (mkfifo(pipe_.c_str(), 0600) != 0) ADD_FAILURE() << "no pipe";
  }
  ~Pipes() override { fs::remove_all(folder_); }

  void expect_refused(const std::vector<std::string>& arguments, int code) const {
    std::vector<std::string> limited{"20", program_path()};
    limited.insert(limited.end(), arguments.begin(), arguments.end());
    const Finished finished = run_program(limited, "/usr/bin/timeout");
    EXPECT_EQ(finished.code, code) << arguments.front() << ": " << finished.err;
    EXPECT_NE(finished.err.find("it is not a regular file"), std::string::npos) << arguments.front() << finished.err;
    EXPECT_NE(finished.err.find(pipe_), std::string::npos) << arguments.front() << finished.err;
  }

  // Writes a config with these additional lines.
  std::string config(const std::string& lines) const {
    const std::string file = (folder_ / "config.yaml").string();
    std::ofstream(file) << "version: 1\nmodel: {input: [1, 8, 8], layers: [linear: {outputs: 10}]}\n" + lines;
    return file;
  }

  fs::path folder_;
  std::string pipe_;
};

TEST_F(Pipes, AreRefusedAsConfig) {
  for (const char* verb : {"check", "summary", "train"}) expect_refused({verb, pipe_}, 2);
}

TEST_F(Pipes, AreRefusedAsBase) {
  expect_refused({"check", config("base: pipe\n")}, 2);
}

TEST_F(Pipes, AreRefusedAsWeights) {
  expect_refused({"eval", pipe_, "models/digits.yaml"}, 3);
  expect_refused({"predict", pipe_, "data/digits", "--model", "models/digits.yaml"}, 3);
  expect_refused({"train", "models/digits.yaml", "--weights", pipe_, "--out", folder_.string()}, 3);
  expect_refused({"conv", pipe_, (folder_ / "out").string()}, 3);
}

TEST_F(Pipes, AreRefusedAsData) {
  expect_refused({"check", config("data: {train: {format: idx, images: pipe, labels: pipe}}\n")}, 3);
  expect_refused({"check", config("data: {train: {format: image_list, file: pipe}}\n")}, 3);
}

}  // namespace
}  // namespace twiddle
