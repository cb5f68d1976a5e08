#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// A small disk for this test, if the system allows to create one.
class FullDisk : public testing::Test {
 protected:
  FullDisk() : disk_(fresh_folder("full_disk")) {}
  ~FullDisk() override {
    if (mounted_) umount2(disk_.c_str(), MNT_DETACH);
    fs::remove_all(disk_);
  }
  bool mount_of(const std::string& size) {
    mounted_ = mount("tmpfs", disk_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    return mounted_;
  }
  std::vector<std::string> train() const {
    return {"train", "models/digits.yaml", "--out", disk_.string(), "--epochs", "100000", "--set", "train.keep=1"};
  }
  fs::path run() const { return disk_ / "digits-001"; }
  void fill() const {
    std::ofstream file(disk_ / "filler");
    const std::string block(4096, 'x');
    while (file << block << std::flush) {
    }
  }

  fs::path disk_;
  bool mounted_ = false;
};

TEST_F(FullDisk, KeepsLastCheckpoint) {
  if (!mount_of("8m")) GTEST_SKIP() << "no small disk can be mounted: " << std::strerror(errno);
  Program program(train());
  ASSERT_TRUE(program.comes_to([&] { return fs::exists(run() / "best.safetensors"); })) << program.err();
  fill();
  EXPECT_EQ(program.wait(), 1);
  EXPECT_NE(program.err().find("No space left on device"), std::string::npos) << program.err();
  fs::remove(disk_ / "filler");
  const Finished resumed = run_program({"train", "--resume", run().string(), "--epochs", "1"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(run_program({"eval", run().string()}).code, 0);
  for (const auto& entry : fs::recursive_directory_iterator(run()))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
}

TEST_F(FullDisk, RefusesRunWithoutCheckpointSpace) {
  if (!mount_of("600k")) GTEST_SKIP() << "no small disk can be mounted: " << std::strerror(errno);
  const Finished train = run_program(this->train());
  EXPECT_EQ(train.code, 1);
  EXPECT_NE(train.err.find("2 checkpoints of "), std::string::npos) << train.err;
  EXPECT_TRUE(fs::is_empty(disk_));
}

}  // namespace
}  // namespace twiddle
