#pragma once
#include <functional>
#include <string>

namespace twiddle {

// What a launcher (mpirun, srun, torchrun) tells a process that it starts, by environment variables.
struct Launch {
  int rank = 0, size = 1;
  int local_rank = 0;         // among the ranks on this machine
  std::string launcher = {};  // empty: the process was started by itself
};

// Reads the variables by `variable`, which gives null where one is not set: those of Open MPI, of MPICH and others that
// speak PMI, of Slurm's srun, and of torchrun. The first family of which both rank and size are set counts. An Error of
// kind config where they make no sense.
Launch read_launch(const std::function<const char*(const char* name)>& variable);

}  // namespace twiddle
