#pragma once
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace twiddle {

// Returns the folders of the process's control groups, the innermost first; the limits of all of them apply. In version
// 1 each controller, such as "cpu" or "memory", has a separate hierarchy; in version 2 all share one. Both may be
// mounted. Empty if none is. `process` is the kernel's folder of the process.
std::vector<std::filesystem::path> cgroup_folders(std::string_view controller,
                                                  const std::filesystem::path& process = "/proc/self");

// How many CPUs' worth of time the groups' quotas allow: 1.5 for `docker --cpus=1.5`; nothing where there is no quota.
std::optional<double> cpu_quota(const std::filesystem::path& process = "/proc/self");

}  // namespace twiddle
