#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/ranks/socket.h"

namespace twiddle {

// The environment variables by which a launcher (mpirun, srun, torchrun, or --gpus) describes a process that it starts.
struct Launch {
  int rank = 0, size = 1;
  int local_rank = 0;           // among the ranks on this machine
  std::string launcher = {};    // empty: the process was started by itself
  SocketPlace rendezvous = {};  // where rank 0 listens if nothing else joins the ranks; no host: unknown
  std::string token = {};       // identifies the ranks of this training at the rendezvous; empty: no check
};

// Reads the variables by `variable`, which gives null where one is not set: those of --gpus, of Open MPI, of MPICH and
// others that speak PMI, of Slurm's srun, and of torchrun. The first family of which both rank and size are set counts.
// An Error of kind config where they make no sense.
Launch read_launch(const std::function<const char*(const char* name)>& variable);

Launch own_launch();      // of this process
std::string host_name();  // of this machine

std::string random_token();  // not predictable

// Returns the environment variables of one of `size` ranks that --gpus starts on this machine.
std::vector<std::pair<std::string, std::string>> variables_of_rank(int rank, int size, int port,
                                                                   const std::string& token);

}  // namespace twiddle
