#pragma once
#include <optional>
#include <string>
#include <vector>

namespace twiddle {

// A variable of the environment that the OpenMP runtime reads.
struct ThreadSetting {
  std::string name, value;
  bool operator==(const ThreadSetting&) const = default;
};

// What the user has left open and is better set than not: how long a thread that waits for others keeps its core
// (GOMP_SPINCOUNT), and no more threads than a quota of CPU time serves (OMP_NUM_THREADS). `threads`: how many there
// would be otherwise.
std::vector<ThreadSetting> missing_thread_settings(std::optional<double> cpu_quota, int threads);

// Sets the missing environment variables and restarts the program, as the runtime reads its environment before main
// starts. Call it first in main. Does nothing if no setting is missing, as in the restarted program, or if the restart
// fails.
void apply_thread_settings(char** argv);

}  // namespace twiddle
