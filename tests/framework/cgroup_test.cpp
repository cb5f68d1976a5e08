#include "framework/cpu/cgroup.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temp_path.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// A machine's control groups as files: what the kernel reports for a process, and the folders where they are mounted.
class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
  void mount(const std::string& root, const std::string& place, const std::string& type, const std::string& options) {
    mounts_ += "36 31 0:33 " + root + " " + (folder_ / place).string() + " rw,relatime shared:9 - " + type +
               " cgroup " + options + "\n";
    write("mountinfo", mounts_);
  }

  const fs::path folder_ = temp_path("cgroup");
  std::string mounts_ = "22 1 8:1 / / rw - ext4 /dev/root rw\n";
};

TEST_F(Cgroup, MayBeMissing) {
  EXPECT_TRUE(cgroup_folders("cpu", folder_).empty());
  EXPECT_FALSE(cpu_quota(folder_));
}

TEST_F(Cgroup, ReadsQuotaOfVersionTwo) {
  mount("/", "all", "cgroup2", "rw,nsdelegate");
  write("cgroup", "0::/job\n");
  write("all/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(folder_), 1.5);
  write("all/job/cpu.max", "max 100000\n");
  EXPECT_FALSE(cpu_quota(folder_));
}

TEST_F(Cgroup, ReturnsSmallestQuotaOfNestedGroups) {
  mount("/", "all", "cgroup2", "rw");
  write("cgroup", "0::/outer/middle/inner\n");
  write("all/outer/cpu.max", "50000 100000\n");
  write("all/outer/middle/cpu.max", "max 100000\n");
  write("all/outer/middle/inner/cpu.max", "400000 100000\n");
  const fs::path all = folder_ / "all";
  EXPECT_EQ(cgroup_folders("memory", folder_),
            (std::vector{all / "outer" / "middle" / "inner", all / "outer" / "middle", all / "outer", all}));
  EXPECT_EQ(cpu_quota(folder_), 0.5);
}

TEST_F(Cgroup, ReadsVersionOneHierarchyPerController) {
  mount("/", "cpuset", "cgroup", "rw,cpuset");
  mount("/", "cpu,cpuacct", "cgroup", "rw,cpu,cpuacct");
  mount("/", "unified", "cgroup2", "rw");
  write("cgroup", "3:cpuset:/elsewhere\n2:cpuacct,cpu:/job\n0::/\n");
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_folders("cpuset", folder_).front(), folder_ / "cpuset" / "elsewhere");
  EXPECT_EQ(cpu_quota(folder_), 2);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(cpu_quota(folder_));
}

// A container sees its own group at the root of the mount, but the kernel reports the group's name on the host.
TEST_F(Cgroup, ReadsGroupOfContainer) {
  mount("/docker/1", "cpu", "cgroup", "rw,cpu");
  write("cgroup", "4:cpu:/docker/1/job\n");
  write("cpu/cpu.cfs_quota_us", "100000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_folders("cpu", folder_), (std::vector{folder_ / "cpu" / "job", folder_ / "cpu"}));
  EXPECT_EQ(cpu_quota(folder_), 1);
  write("cgroup", "4:cpu:/somewhere/else\n");
  EXPECT_EQ(cgroup_folders("cpu", folder_), (std::vector{folder_ / "cpu"}));
}

}  // namespace
}  // namespace twiddle
