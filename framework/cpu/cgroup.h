#pragma once
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace twiddle {

// The folders of the control groups that this process is in, its own first, then those around it: a limit in any of
// them holds. A controller, such as "cpu" or "memory", has a hierarchy of its own in version 1 and shares one in
// version 2; both may be mounted. Empty where none is. `process` is the kernel's folder about the process.
std::vector<std::filesystem::path> cgroup_folders(std::string_view controller,
                                                  const std::filesystem::path& process = "/proc/self");

// How many CPUs' worth of time the groups' quotas allow: 1.5 for `docker --cpus=1.5`; nothing where there is no quota.
std::optional<double> cpu_quota(const std::filesystem::path& process = "/proc/self");

}  // namespace twiddle
