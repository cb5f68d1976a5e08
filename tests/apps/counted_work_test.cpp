#include "apps/verbs/counted_work.h"

#include <gtest/gtest.h>

#include <csignal>

#include "framework/interrupted.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

TEST(CountedWork, ReportsRemainingTimeOnceKnown) {
  EXPECT_EQ(counted_line("reading images", 200, 50000, 0), "reading images: 200 of 50,000");
  EXPECT_EQ(counted_line("reading images", 12500, 50000, 0.0032), "reading images: 12,500 of 50,000, about 2:00 to go");
}

TEST(CountedWork, PrintsNothingIfShort) {
  testing::internal::CaptureStderr();
  const Interrupt interrupt;
  CountedWork work("reading images", 2, true, interrupt);
  work.at(1);
  work.at(2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(CountedWork, StopsOnSignal) {
  const Interrupt interrupt;
  CountedWork work("reading images", 3000, true, interrupt);
  work.at(1000);
  kill(getpid(), SIGTERM);
  while (!interrupt.stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  try {
    work.at(2000);
    ADD_FAILURE() << "did not stop";
  } catch (const Interrupted& interrupted) {
    EXPECT_STREQ(interrupted.what(), "stopped reading images: 2,000 of 3,000 were done");
  }
}

// Enough images that the work does not finish within the test.
class ManyImages : public testing::Test {
 protected:
  ManyImages() : folder_(fresh_folder("many_images")), config_((folder_ / "many.yaml").string()) {
    std::ofstream(config_) << "version: 1\nmodel: {input: [1, 8, 8], layers: [linear: {outputs: 2}]}\n"
                              "data:\n  train: {format: synthetic, images: 8, classes: 2}\n"
                              "  val: {format: synthetic, images: 1000000000, classes: 2}\n"
                              "train: {batch_size: 8, epochs: 1}\n";
  }
  ~ManyImages() override { fs::remove_all(folder_); }

  static void expect_reported_and_stopped(const std::vector<std::string>& arguments, const std::string& doing) {
    Program program(arguments);
    EXPECT_TRUE(program.comes_to([&] { return program.err().find(" to go\n") != std::string::npos; })) << program.err();
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 130);
    EXPECT_EQ(program.out().find(doing), std::string::npos) << program.out();
    EXPECT_NE(program.err().find(doing + ": "), std::string::npos) << program.err();
    EXPECT_NE(program.err().find("\nstopped " + doing + ": "), std::string::npos) << program.err();
  }

  fs::path folder_;
  std::string config_;
};

TEST_F(ManyImages, CheckReportsProgressAndStops) {
  expect_reported_and_stopped({"check", config_, "--images"}, "reading images");
}

TEST_F(ManyImages, CheckStopsAfterCurrentFile) {
  std::vector<std::string> arguments(20001, config_);
  arguments.front() = "check";
  Program program(arguments);
  EXPECT_TRUE(program.comes_to([&] { return program.out().find("ok  ") != std::string::npos; })) << program.err();
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_NE(program.err().find(" of 20,000 files were checked"), std::string::npos) << program.err();
}

TEST_F(ManyImages, EvalReportsProgressAndStops) {
  const Finished train = run_program({"train", config_, "--limit-batches", "1", "--set", "data.val=null", "--out",
                                      (folder_ / "runs").string(), "--device", "cpu"});
  ASSERT_EQ(train.code, 0) << train.err;
  expect_reported_and_stopped({"eval", (folder_ / "runs" / "many-001").string(), config_, "--device", "cpu"},
                              "measuring on images");
}

}  // namespace
}  // namespace twiddle
