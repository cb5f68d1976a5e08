#include "framework/cpu/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "framework/cpu/cgroup.h"

namespace twiddle {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

// Returns the number in a file; none if it contains "max" or does not exist.
std::optional<std::size_t> read_number(const fs::path& path) {
  std::size_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

// Returns the number after a name, in a file with lines such as "MemAvailable:   21526400 kB", "inactive_file 4096".
std::size_t number_of(const fs::path& path, const std::string& wanted) {
  std::ifstream file(path);
  std::string name, rest;
  for (std::size_t number = 0; file >> name >> number; std::getline(file, rest))
    if (name == wanted) return number;
  return 0;
}

std::size_t left_of(std::size_t limit, std::size_t used) {
  return used < limit ? limit - used : 1;  // 0 would mean unknown
}

std::size_t left_on_machine(const fs::path& proc) {
  const fs::path file = proc / "meminfo";
  const std::size_t available = number_of(file, "MemAvailable:");
  return available == 0 ? no_limit : (available + number_of(file, "SwapFree:")) * 1024;
}

// What the kernel keeps of files goes where memory is needed, though it counts as used.
std::size_t left_in_group(const fs::path& group) {
  const bool second = fs::exists(group / "memory.max");
  const auto limit = read_number(group / (second ? "memory.max" : "memory.limit_in_bytes"));
  const auto used = read_number(group / (second ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !used) return no_limit;
  const std::string prefix = second ? "" : "total_";
  const fs::path details = group / "memory.stat";
  const std::size_t files = number_of(details, prefix + "inactive_file") + number_of(details, prefix + "active_file");
  return left_of(*limit, *used - std::min(files, *used));
}

std::size_t left_of_addresses(const fs::path& proc) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return no_limit;
  const std::size_t pages = read_number(proc / "self/statm").value_or(0);
  return left_of(limit.rlim_cur, pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace

std::size_t resident_memory(const fs::path& proc) {
  std::size_t pages = 0, resident = 0;
  std::ifstream(proc / "self/statm") >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t free_memory(const fs::path& proc) {
  std::size_t least = std::min(left_on_machine(proc), left_of_addresses(proc));
  for (const fs::path& group : cgroup_folders("memory", proc / "self")) least = std::min(least, left_in_group(group));
  return least == no_limit ? 0 : least;
}

}  // namespace twiddle
