#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/verbs/verbs.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

// The ranks that this process trains with, as its launcher has them; itself alone where it was started without one.
// Joined by NCCL where there are GPUs and the flags do not ask for the CPU, else by MPI.
std::shared_ptr<Communicator> join_ranks(const Flags& flags);

// The GPU of this process, of those that it sees, where it is one of several on its machine; none where it is alone.
std::optional<int> gpu_of_rank();

// Tells which rank is gone, or what else is wrong, and the last checkpoint as it is then found; empty: there is none.
Communicator::WhenLost teller_of_loss(const Communicator& ranks, std::function<std::string()> last_checkpoint);

// Runs the work of this rank and returns its exit code, on ranks of the same program that were started with the same
// flags. An exception is passed on if this process is alone. Else it ends all ranks and is reported once: by rank 0 if
// all have failed, and otherwise by the rank that did.
int run_on_ranks(Communicator& ranks, const Flags& flags, const std::function<int()>& work);

// Something that must be the same on all ranks.
struct SharedFact {
  std::string what, text, advice;  // "config", its lines, and what to do where they differ
};
// Throws an Error of kind config on all ranks, with the first line of each fact that differs from rank 0's.
void expect_alike(Communicator& ranks, const std::vector<SharedFact>& facts);

void expect_same_config(Communicator& ranks, const Config& config);

// "3 on a with 8 threads each, 1 on b with 4 threads": for all ranks at once.
std::string hosts_of(Communicator& ranks);

}  // namespace twiddle
