#include "framework/ranks/launch.h"

#include <charconv>
#include <cstring>

#include "framework/error.h"

namespace twiddle {

namespace {

// SLURM_STEP_NUM_TASKS, not SLURM_NTASKS: a batch script has that one, too, and what it starts without srun is alone.
// mpirun comes first: where it runs inside a step of Slurm, its own ranks count.
struct Family {
  const char *launcher, *rank, *size, *local_rank;
};
constexpr Family families[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
};

int number_of(const char* name, const char* text) {
  int number = -1;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end || number < 0)
    throw Error(ErrorKind::config, join("the environment variable ", name, " is '", text, "', not a number"));
  return number;
}

}  // namespace

Launch read_launch(const std::function<const char*(const char* name)>& variable) {
  for (const Family& family : families) {
    const char *const rank = variable(family.rank), *const size = variable(family.size);
    if (rank == nullptr || size == nullptr) continue;
    Launch launch{number_of(family.rank, rank), number_of(family.size, size), 0, family.launcher};
    if (const char* const local = variable(family.local_rank)) launch.local_rank = number_of(family.local_rank, local);
    if (launch.rank >= launch.size)
      throw Error(ErrorKind::config, join("the environment says rank ", rank, " of ", size, " (", family.rank, ", ",
                                          family.size, "): the first rank is 0"));
    return launch;
  }
  return {};
}

}  // namespace twiddle
