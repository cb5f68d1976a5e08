#include "framework/cpu/thread_settings.h"

#include <omp.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include "framework/cpu/cgroup.h"

namespace twiddle {

namespace {

bool is_set(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace

std::vector<ThreadSetting> missing_thread_settings(std::optional<double> cpu_quota, int threads) {
  std::vector<ThreadSetting> missing;
  // By default a thread spins about 300,000 times before it sleeps. If other programs use its core, it may block the
  // thread it waits for. This lower count costs nothing on idle cores: docs/notes/cpu.md.
  if (!is_set({"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"})) missing.push_back({"GOMP_SPINCOUNT", "10000"});
  // The kernel stops all threads of a group that has used its quota up until the next period begins. A thread for a
  // part of a CPU still brings that part.
  if (cpu_quota && std::ceil(*cpu_quota) < threads && !is_set({"OMP_NUM_THREADS"}))
    missing.push_back({"OMP_NUM_THREADS", std::to_string(static_cast<int>(std::ceil(*cpu_quota)))});
  return missing;
}

void apply_thread_settings(char** argv) {
  const auto missing = missing_thread_settings(cpu_quota(), omp_get_max_threads());
  if (missing.empty()) return;
  for (const ThreadSetting& setting : missing) setenv(setting.name.c_str(), setting.value.c_str(), 1);
  // By its own path, so that lists of processes show the program's name.
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) execv(program.c_str(), argv);
}

}  // namespace twiddle
