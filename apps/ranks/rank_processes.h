#pragma once
#include <string>
#include <vector>

namespace twiddle {

// Starts so many processes of a program on this machine, the ranks of one training, and waits until all have ended;
// meanwhile it hands on what asks this process to end. Where one fails, the others get some seconds to end by
// themselves and are ended then. The exit code is that of the first that failed, which is named where it could not do
// that itself.
int run_rank_processes(const std::string& program, const std::vector<std::string>& arguments, int count);

// The same for this program as it was called, where it was not started as such a rank: throws an Error of kind config
// where this machine has not as many GPUs, or where another launcher has started it.
int run_on_gpus(int count);
bool is_started_rank();  // this process is one of them

}  // namespace twiddle
