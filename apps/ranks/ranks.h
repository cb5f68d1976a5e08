#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/verbs/verbs.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

// Joins the ranks that the launcher started; a single rank if there was no launcher. Uses NCCL if there are GPUs and
// the flags do not select the CPU, else MPI.
std::shared_ptr<Communicator> join_ranks(const Flags& flags);

// Returns the index of this process's GPU among the visible GPUs if there are several ranks; empty if there is only one
// rank or no GPU.
std::optional<int> gpu_of_rank();

// Returns a callback that reports a lost rank, or another failure, with the last checkpoint at that time; empty: none.
Communicator::WhenLost lost_rank_reporter(const Communicator& ranks, std::function<std::string()> last_checkpoint);

// Runs the work of this rank and returns its exit code. All ranks must run the same program with the same flags. With a
// single rank, an exception propagates. With several, it stops all ranks and is reported once: by rank 0 if all ranks
// failed, otherwise by a rank that failed.
int run_on_ranks(Communicator& ranks, const Flags& flags, const std::function<int()>& work);

// A value that must be the same on all ranks.
struct SharedFact {
  std::string what, text, advice;  // "config", its lines, and what to do if they differ
};
// Throws an Error of kind config on all ranks, with the first line of each fact that differs from rank 0's.
void expect_alike(Communicator& ranks, const std::vector<SharedFact>& facts);

void expect_same_config(Communicator& ranks, const Config& config);

// Returns "3 on a with 8 threads each, 1 on b with 4 threads". Collective: call on all ranks.
std::string hosts_of(Communicator& ranks);

}  // namespace twiddle
