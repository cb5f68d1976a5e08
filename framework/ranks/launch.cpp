#include "framework/ranks/launch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <random>

#include "framework/error.h"

namespace twiddle {

namespace {

// SLURM_STEP_NUM_TASKS, not SLURM_NTASKS: a batch script has that one, too, and what it starts without srun is alone.
// A launcher that was started by another one comes before that: --gpus and torchrun under srun or mpirun, mpirun inside
// a step of Slurm. Names that others may use, too, come last.
struct Family {
  const char *launcher, *rank, *size, *local_rank, *sign;  // the sign must be set as well
  const char *job, *step;                                  // variables that identify the job
};
constexpr Family families[] = {
    {"--gpus", "TWIDDLE_RANK", "TWIDDLE_RANKS", "TWIDDLE_RANK", "TWIDDLE_PORT", "TWIDDLE_TOKEN", nullptr},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RUN_ID", nullptr},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", nullptr, "PMIX_NAMESPACE",
     nullptr},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", nullptr, nullptr, nullptr},
    {"srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID", "SLURM_STEP_ID"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID", "SLURM_STEP_ID"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", nullptr, nullptr, nullptr},
};

using ReadVariable = std::function<const char*(const char* name)>;

int number_of(const char* name, const char* text) {
  int number = -1;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end || number < 0)
    throw Error(ErrorKind::config, join("the environment variable ", name, " is '", text, "', not a number"));
  return number;
}

// Returns the number of ranks on this machine; 0: unknown.
int ranks_here(const ReadVariable& variable) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"})
    if (const char* const text = variable(name)) return number_of(name, text);
  return 0;
}

// The first host of a list of Slurm's: "a" of "a,b", "node07" of "node[07-09,12],other".
std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of(",[");
  std::string host = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return host;
  const std::size_t first = end + 1;
  return host + list.substr(first, list.find_first_of(",-]", first) - first);
}

constexpr int usual_port = 29501;  // after torchrun's default

// Uses the port after the launcher's: torchrun listens at MASTER_PORT, and NCCL at NCCL_COMM_ID.
SocketPlace rendezvous_of(const Launch& launch, const ReadVariable& variable) {
  if (const char* const port = variable("TWIDDLE_PORT")) return {"127.0.0.1", number_of("TWIDDLE_PORT", port)};
  if (const char* const id = variable("NCCL_COMM_ID")) {
    const std::string place = id;
    const std::size_t colon = std::min(place.rfind(':'), place.size());
    const std::string port = colon < place.size() ? place.substr(colon + 1) : "";
    std::string host = place.substr(0, colon);
    std::erase_if(host, [](char letter) { return letter == '[' || letter == ']'; });  // of an IPv6 address
    return {host, number_of("NCCL_COMM_ID", port.c_str()) + 1};
  }
  const char* const given = variable("MASTER_PORT");
  int port = given != nullptr ? number_of("MASTER_PORT", given) + 1 : usual_port;
  if (const char* const host = variable("MASTER_ADDR")) return {host, port};
  if (ranks_here(variable) == launch.size) return {"127.0.0.1", port};
  const char* const hosts = variable("SLURM_STEP_NODELIST");
  if (hosts == nullptr) return {};
  // Jobs of several users may share a machine.
  constexpr int ports_of_jobs = 20000, first_port = 20001;
  const char* const job = variable("SLURM_JOB_ID");
  if (given == nullptr && job != nullptr) port = first_port + number_of("SLURM_JOB_ID", job) % ports_of_jobs;
  return {first_host(hosts), port};
}

// The token of --gpus is random; other launchers provide a job name.
std::string token_of(const Family& family, const ReadVariable& variable) {
  std::string token;
  for (const char* name : {family.job, family.step})
    if (const char* const text = name != nullptr ? variable(name) : nullptr) token += std::string(text) + '/';
  return token;
}

}  // namespace

Launch read_launch(const ReadVariable& variable) {
  for (const Family& family : families) {
    const char *const rank = variable(family.rank), *const size = variable(family.size);
    if (rank == nullptr || size == nullptr) continue;
    if (family.sign != nullptr && variable(family.sign) == nullptr) continue;
    Launch launch{number_of(family.rank, rank), number_of(family.size, size), 0, family.launcher, {}, {}};
    if (const char* const local = variable(family.local_rank)) launch.local_rank = number_of(family.local_rank, local);
    if (launch.rank >= launch.size)
      throw Error(ErrorKind::config, join("the environment sets rank ", rank, " of ", size, " (", family.rank, ", ",
                                          family.size, "): the first rank is 0"));
    if (launch.size > 1) launch.rendezvous = rendezvous_of(launch, variable), launch.token = token_of(family, variable);
    return launch;
  }
  return {};
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

Launch own_launch() {
  return read_launch([](const char* name) { return std::getenv(name); });
}

std::string random_token() {
  std::random_device device;
  std::string token;
  for (int part = 0; part < 4; ++part) token += (part > 0 ? "-" : "") + std::to_string(device());
  return token;
}

std::vector<std::pair<std::string, std::string>> variables_of_rank(int rank, int size, int port,
                                                                   const std::string& token) {
  return {{"TWIDDLE_RANK", std::to_string(rank)},
          {"TWIDDLE_RANKS", std::to_string(size)},
          {"TWIDDLE_PORT", std::to_string(port)},
          {"TWIDDLE_TOKEN", token}};
}

}  // namespace twiddle
