#include "framework/cpu/bind_threads.h"
#include "framework/error.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

namespace twiddle {
namespace {

using Cores = std::set<int>;

Cores cores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  Cores cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.insert(core);
  return cores;
}

// Returns the cores on which each of `threads` may run after bind_threads(). Uses a new thread with its own OpenMP
// threads, so that this process's other threads stay unchanged.
std::vector<Cores> bound(int threads) {
  std::vector<Cores> of_thread(static_cast<std::size_t>(threads));
  std::thread([&] {
    omp_set_num_threads(threads);
    bind_threads();
#pragma omp parallel
    of_thread[static_cast<std::size_t>(omp_get_thread_num())] = cores_of_this_thread();
  }).join();
  return of_thread;
}

class BindThreads : public testing::Test {
 protected:
  void SetUp() override { unsetenv("OMP_PROC_BIND"); }
  void TearDown() override { unsetenv("OMP_PROC_BIND"); }
  const Cores all_ = cores_of_this_thread();
  const int count_ = static_cast<int>(all_.size());
};

TEST_F(BindThreads, BindsOneThreadPerCore) {
  Cores taken;
  for (const Cores& cores : bound(count_)) {
    EXPECT_EQ(cores.size(), 1u);
    taken.insert(cores.begin(), cores.end());
  }
  EXPECT_EQ(taken, all_);
  EXPECT_EQ(cores_of_this_thread(), all_) << "another thread was bound";
}

TEST_F(BindThreads, DoesNotBindOtherThreadCounts) {
  for (const int threads : {count_ - 1, count_ + 1}) {
    if (threads == 0) continue;  // of one core
    for (const Cores& cores : bound(threads)) EXPECT_EQ(cores, all_) << threads << " threads";
  }
}

TEST_F(BindThreads, RespectsOmpProcBind) {
  setenv("OMP_PROC_BIND", "false", 1);
  for (const Cores& cores : bound(count_)) EXPECT_EQ(cores, all_);
}

TEST_F(BindThreads, UnbindsChildThread) {
  Cores inherited, after;
  std::thread([&] {
    omp_set_num_threads(count_);
    bind_threads();
    std::thread([&] {
      inherited = cores_of_this_thread();
      unbind_this_thread();
      after = cores_of_this_thread();
    }).join();
  }).join();
  EXPECT_EQ(inherited.size(), 1u);
  EXPECT_EQ(after, all_);
}

}  // namespace
}  // namespace twiddle
