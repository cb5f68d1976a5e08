#include "apps/run_folder/run_lock.h"

#include <gtest/gtest.h>

#include "apps/report/metrics.h"
#include "framework/error.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

std::string refusal_of(const fs::path& folder) {
  try {
    const RunLock lock(folder);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(RunLock, IsExclusiveAndNamesHolder) {
  const fs::path folder = fresh_folder("lock");
  {
    const RunLock first(folder);
    EXPECT_EQ(first.missing(), "");
    const std::string refusal = refusal_of(folder);
    EXPECT_NE(refusal.find("another process (pid " + std::to_string(getpid()) + " on "), std::string::npos) << refusal;
  }
  EXPECT_EQ(refusal_of(folder), "");
}

TEST(RunLock, DoesNotFollowLink) {
  const fs::path folder = fresh_folder("lock_link");
  std::ofstream(folder / "precious") << "text";
  fs::create_symlink("precious", folder / ".lock");
  EXPECT_NE(refusal_of(folder), "");
  EXPECT_EQ(read_text(folder / "precious"), "text");
}

TEST(RunLock, DetectsRemovedFolder) {
  const fs::path folder = fresh_folder("lock_gone");
  const RunLock lock(folder);
  EXPECT_NO_THROW(lock.check_folder());
  fs::remove_all(folder);
  try {
    lock.check_folder();
    ADD_FAILURE() << "it was removed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
  }
}

class TwoProcesses : public testing::Test {
 protected:
  TwoProcesses() : out_(fresh_folder("two")) {}
  ~TwoProcesses() override { fs::remove_all(out_); }

  std::vector<std::string> begin(const std::string& epochs) const {
    return {"train", "models/digits.yaml", "--out", out_.string(), "--limit-batches", "20", "--epochs", epochs};
  }
  std::vector<std::string> resume(const std::string& epochs) const {
    return {"train", "--resume", run().string(), "--limit-batches", "20", "--epochs", epochs};
  }
  fs::path run() const { return out_ / "digits-001"; }
  void wait_for_a_checkpoint(const Program& program) const {
    const auto saved = [&] { return fs::exists(run() / "metrics.csv") && read_history(run()).epochs.size() > 1; };
    EXPECT_TRUE(program.comes_to(saved)) << program.err();
  }

  fs::path out_;
};

TEST_F(TwoProcesses, SecondNamesFirstAndExits) {
  Program first(begin("100000"));
  wait_for_a_checkpoint(first);
  const Finished second = run_program(resume("100000"));
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("another process (pid " + std::to_string(first.pid())), std::string::npos) << second.err;
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 130) << first.err();
  EXPECT_EQ(run_program(resume("1")).code, 0);
}

TEST_F(TwoProcesses, KilledProcessReleasesLock) {
  Program first(begin("100000"));
  wait_for_a_checkpoint(first);
  first.signal(SIGKILL);
  first.wait();
  EXPECT_EQ(run_program(resume("1")).code, 0);
}

TEST_F(TwoProcesses, ConcurrentResumesKeepRunIntact) {
  ASSERT_EQ(run_program(begin("1")).code, 0);
  for (const char* epochs : {"3", "5", "7"}) {
    Program first(resume(epochs)), second(resume(epochs));
    const int codes[] = {first.wait(), second.wait()};
    EXPECT_TRUE(codes[0] == 0 || codes[1] == 0) << first.err() << second.err();
    for (const int code : codes) EXPECT_TRUE(code == 0 || code == 1) << first.err() << second.err();
    EXPECT_EQ(std::to_string(read_history(run()).epochs.size()), epochs);
    for (const auto& entry : fs::directory_iterator(run() / "checkpoints"))
      EXPECT_TRUE(entry.path().filename().string().starts_with("step-")) << entry.path();
  }
}

TEST_F(TwoProcesses, RemovedFolderStopsRunWithThree) {
  Program program(begin("100000"));
  wait_for_a_checkpoint(program);
  fs::rename(run(), out_ / "elsewhere");
  EXPECT_EQ(program.wait(), 3);
  EXPECT_NE(program.err().find("was removed or moved"), std::string::npos) << program.err();
}

}  // namespace
}  // namespace twiddle
