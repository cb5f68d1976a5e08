#include "framework/cpu/free_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "framework/device.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

namespace fs = std::filesystem;

// Files of another machine's kernel: `proc`, and its control groups in `groups`.
class FreeMemory : public testing::Test {
 protected:
  FreeMemory() : root_(temp_path("system")) {
    fs::remove_all(root_);
    write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable:   6000 kB\nSwapTotal: 900 kB\nSwapFree: 500 kB\n");
  }
  ~FreeMemory() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // The process is in `group` of a hierarchy; only the groups below `seen` are visible.
  void be_in(const std::string& group, const std::string& seen, bool version_2 = true) const {
    write("proc/self/cgroup", (version_2 ? "0::" : "7:cpu,cpuacct:/other\n4:memory:") + group + "\n");
    write("proc/self/mountinfo", "35 31 0:32 " + seen + " " + (root_ / "groups").string() + " rw - " +
                                     (version_2 ? "cgroup2 cgroup2 rw\n" : "cgroup cgroup rw,memory\n"));
  }
  std::size_t left() const { return free_memory(root_ / "proc"); }

  fs::path root_;
};

TEST_F(FreeMemory, CountsAvailableAndSwapWithoutCgroups) {
  EXPECT_EQ(left(), 6500u * 1024);
}

TEST_F(FreeMemory, CountsCachedFilesAsFree) {
  be_in("/box", "/");
  write("groups/box/memory.max", "1000000\n");
  write("groups/box/memory.current", "700000\n");
  write("groups/box/memory.stat", "anon 400000\ninactive_file 200000\nactive_file 50000\n");
  EXPECT_EQ(left(), 550000u);
}

TEST_F(FreeMemory, RespectsLimitsOfParentGroups) {
  be_in("/box/job", "/");
  write("groups/box/job/memory.max", "max\n");
  write("groups/box/job/memory.current", "1000\n");
  write("groups/box/memory.max", "3000\n");
  write("groups/box/memory.current", "1000\n");
  EXPECT_EQ(left(), 2000u);
  write("groups/box/memory.current", "4000\n");
  EXPECT_EQ(left(), 1u);  // none, and known
}

TEST_F(FreeMemory, ReadsGroupOfVersionOne) {
  be_in("/box", "/", false);
  write("groups/box/memory.limit_in_bytes", "1000000\n");
  write("groups/box/memory.usage_in_bytes", "700000\n");
  write("groups/box/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\n");
  EXPECT_EQ(left(), 400000u);
}

TEST_F(FreeMemory, ReadsGroupOfContainer) {
  be_in("/docker/0123", "/docker/0123");
  write("groups/memory.max", "5000\n");
  write("groups/memory.current", "1000\n");
  EXPECT_EQ(left(), 4000u);
}

TEST_F(FreeMemory, IsZeroOnUnknownSystem) {
  EXPECT_EQ(free_memory(root_ / "none"), 0u);
}

TEST(Device, CpuStreamReportsFreeMemory) {
  EXPECT_GT(make_stream({})->memory().free, 1u << 20);
}

}  // namespace
}  // namespace twiddle
