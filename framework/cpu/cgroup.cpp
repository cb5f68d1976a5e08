#include "framework/cpu/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace fs = std::filesystem;

namespace twiddle {

namespace {

bool lists(const std::string& names, std::string_view name) {  // "rw,cpu,cpuacct" lists "cpu"
  std::istringstream text(names);
  for (std::string each; std::getline(text, each, ',');)
    if (each == name) return true;
  return false;
}

// A hierarchy in /proc/self/mountinfo: its group `root` is mounted at the folder `place`.
struct Mount {
  std::string root, place;
  bool version_2 = false;
};

// "36 31 0:33 /docker/1 /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory"
std::optional<Mount> read_mount(const std::string& line, std::string_view controller) {
  const std::size_t separator = line.find(" - ");
  if (separator == std::string::npos) return {};
  std::istringstream before(line), after(line.substr(separator + 3));
  std::string skipped, root, place, type, options;
  before >> skipped >> skipped >> skipped >> root >> place;
  after >> type >> skipped >> options;
  if (type == "cgroup2") return Mount{root, place, true};
  if (type == "cgroup" && lists(options, controller)) return Mount{root, place, false};
  return {};
}

// The process's group in a hierarchy, as /proc/self/cgroup names it: "4:cpu,cpuacct:/docker/1", in version 2 "0::/".
std::string group_in(const fs::path& process, const Mount& mount, std::string_view controller) {
  std::ifstream file(process / "cgroup");
  std::string number, controllers, group;
  while (std::getline(file, number, ':') && std::getline(file, controllers, ':') && std::getline(file, group))
    if (mount.version_2 ? controllers.empty() : lists(controllers, controller)) return group;
  return {};
}

// From the group's folder up to where the hierarchy is mounted.
std::vector<fs::path> folders_of(const Mount& mount, const std::string& group) {
  const fs::path below = fs::path(group).lexically_relative(mount.root);
  const bool seen = !below.empty() && *below.begin() != "." && *below.begin() != "..";
  std::vector<fs::path> folders{mount.place};
  if (seen)
    for (const fs::path& name : below) folders.push_back(folders.back() / name);
  std::reverse(folders.begin(), folders.end());
  return folders;
}

// CPUs by one group's own quota: microseconds of all its CPUs' time in each period.
std::optional<double> quota_of(const fs::path& folder) {
  double quota = 0, period = 0;
  std::ifstream both(folder / "cpu.max");  // version 2: "150000 100000", or "max 100000"
  std::ifstream quota_only(folder / "cpu.cfs_quota_us"), period_only(folder / "cpu.cfs_period_us");  // -1: none
  const bool is_known = (both >> quota >> period) || (quota_only >> quota && period_only >> period);
  if (!is_known || quota <= 0 || period <= 0) return {};
  return quota / period;
}

}  // namespace

std::vector<fs::path> cgroup_folders(std::string_view controller, const fs::path& process) {
  std::vector<fs::path> folders;
  std::ifstream mounts(process / "mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto mount = read_mount(line, controller);
    if (!mount) continue;
    const auto found = folders_of(*mount, group_in(process, *mount, controller));
    folders.insert(folders.end(), found.begin(), found.end());
  }
  return folders;
}

std::optional<double> cpu_quota(const fs::path& process) {
  std::optional<double> least;
  for (const fs::path& folder : cgroup_folders("cpu", process))
    if (const auto quota = quota_of(folder)) least = std::min(least.value_or(*quota), *quota);
  return least;
}

}  // namespace twiddle
