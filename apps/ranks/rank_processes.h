#pragma once
#include <string>
#include <vector>

namespace twiddle {

// Starts `count` processes of a program on this machine, the ranks of one training run, and waits until all have
// exited. Forwards requests to stop, such as SIGTERM. If a rank fails, the others get 10 s to exit before they are
// stopped. Returns the exit code of the first rank that failed. If a signal killed that rank, prints its number.
int run_rank_processes(const std::string& program, const std::vector<std::string>& arguments, int count);

// Does the same for this program with its current arguments. Call it only if is_started_rank() is false. Throws an
// Error of kind config if this machine has fewer GPUs or if another launcher started this process.
int run_on_gpus(int count);
bool is_started_rank();  // run_on_gpus() started this process

}  // namespace twiddle
