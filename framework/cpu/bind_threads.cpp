#include "framework/cpu/bind_threads.h"

#include <omp.h>
#include <sched.h>

#include <cstdlib>
#include <vector>

namespace twiddle {

namespace {

// The initial affinity of the process (taskset, a control group): read once, before a thread is bound.
const cpu_set_t& cores_of_process() {
  static const cpu_set_t at_start = [] {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);  // empty on a machine of more than 1024 cores: nothing is bound there
    return cores;
  }();
  return at_start;
}

std::vector<int> numbers_of(const cpu_set_t& cores) {
  std::vector<int> numbers;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) numbers.push_back(core);
  return numbers;
}

void bind_this_thread(int core) {
  cpu_set_t alone;
  CPU_ZERO(&alone);
  CPU_SET(core, &alone);
  sched_setaffinity(0, sizeof alone, &alone);
}

bool user_binds_threads() {
  return std::getenv("OMP_PROC_BIND") != nullptr || omp_get_proc_bind() != omp_proc_bind_false;
}

}  // namespace

void bind_threads() {
  // Never freed: it outlives every thread that reads it.
  static const std::vector<int>& cores = *new std::vector<int>(numbers_of(cores_of_process()));
  if (user_binds_threads() || omp_get_max_threads() != static_cast<int>(cores.size())) return;
#pragma omp parallel
  bind_this_thread(cores[static_cast<std::size_t>(omp_get_thread_num())]);
}

void unbind_this_thread() {
  const cpu_set_t& cores = cores_of_process();
  sched_setaffinity(0, sizeof cores, &cores);
}

}  // namespace twiddle
