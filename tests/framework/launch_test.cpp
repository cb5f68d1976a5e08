#include "framework/ranks/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "framework/error.h"

namespace twiddle {
namespace {

Launch launch_of(const std::map<std::string, std::string>& variables) {
  return read_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect(const Launch& launch, int rank, int size, int local_rank, const std::string& launcher) {
  EXPECT_EQ(launch.rank, rank);
  EXPECT_EQ(launch.size, size);
  EXPECT_EQ(launch.local_rank, local_rank);
  EXPECT_EQ(launch.launcher, launcher);
}

TEST(Launch, SingleProcessHasOneRank) {
  expect(launch_of({}), 0, 1, 0, "");
  expect(launch_of({{"RANK", "3"}}), 0, 1, 0, "");  // that name alone may mean anything
}

TEST(Launch, ReadsVariablesOfEachLauncher) {
  expect(launch_of({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}),
         5, 8, 1, "mpirun");
  expect(launch_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "2"}}), 2, 4, 2, "mpirun");
  expect(launch_of({{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}}), 1, 2, 0, "srun");
  expect(launch_of({{"SLURM_PROCID", "7"}, {"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_LOCALID", "3"}}), 7, 16, 3, "srun");
  expect(launch_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}}), 1, 2, 1, "torchrun");
}

// In a batch script with 4 requested tasks that has not called srun yet.
TEST(Launch, SlurmBatchScriptHasOneRank) {
  expect(launch_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}), 0, 1, 0, "");
}

TEST(Launch, PrefersMpirunInsideSlurmStep) {
  expect(launch_of({{"SLURM_PROCID", "0"},
                    {"SLURM_STEP_NUM_TASKS", "1"},
                    {"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "4"}}),
         1, 4, 0, "mpirun");
}

// srun has started a torchrun on each of two machines.
TEST(Launch, PrefersInnerLauncher) {
  const std::map<std::string, std::string> outer{
      {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}};
  std::map<std::string, std::string> torchrun{
      {"RANK", "9"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "none"}};
  torchrun.insert(outer.begin(), outer.end());
  expect(launch_of(torchrun), 9, 16, 1, "torchrun");
  std::map<std::string, std::string> gpus = outer;
  for (const auto& variable : variables_of_rank(2, 4, 40000, "random")) gpus.insert(variable);
  expect(launch_of(gpus), 2, 4, 2, "--gpus");
  EXPECT_EQ(launch_of(gpus).token, "random/");
}

std::string rendezvous_of(std::map<std::string, std::string> variables) {
  variables.insert({{"SLURM_PROCID", "7"}, {"SLURM_STEP_NUM_TASKS", "16"}});
  const SocketPlace place = launch_of(variables).rendezvous;
  return place.host.empty() ? "" : to_string(place);
}

TEST(Launch, RendezvousUsesPortAfterMasterPort) {
  EXPECT_EQ(rendezvous_of({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}}), "a:29501");
  EXPECT_EQ(rendezvous_of({{"MASTER_ADDR", "a"}}), "a:29501");
  EXPECT_EQ(rendezvous_of({{"NCCL_COMM_ID", "10.0.0.1:5000"}, {"MASTER_ADDR", "a"}}), "10.0.0.1:5001");
  EXPECT_EQ(rendezvous_of({{"NCCL_COMM_ID", "[fe80::1]:5000"}}), "fe80::1:5001");
  const auto variables = variables_of_rank(1, 4, 40000, "random");
  EXPECT_EQ(to_string(launch_of({variables.begin(), variables.end()}).rendezvous), "127.0.0.1:40000");
}

TEST(Launch, TokenIdentifiesJob) {
  const auto token_of = [](std::map<std::string, std::string> more) {
    more.insert({{"SLURM_PROCID", "7"}, {"SLURM_STEP_NUM_TASKS", "16"}});
    return launch_of(more).token;
  };
  EXPECT_EQ(token_of({{"SLURM_JOB_ID", "20007"}, {"SLURM_STEP_ID", "1"}}), "20007/1/");
  EXPECT_EQ(token_of({}), "");
  EXPECT_EQ(token_of({{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"PMIX_NAMESPACE", "prterun-a-77"},
                      {"SLURM_JOB_ID", "20007"}}),
            "prterun-a-77/");
}

TEST(Launch, TokensDiffer) {
  EXPECT_NE(random_token(), random_token());
}

TEST(Launch, RendezvousIsLocalWithoutAddress) {
  const std::map<std::string, std::string> variables{
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(to_string(launch_of(variables).rendezvous), "127.0.0.1:29501");
  EXPECT_EQ(launch_of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).rendezvous.host, "");
}

TEST(Launch, RendezvousIsOnFirstSlurmHost) {
  EXPECT_EQ(rendezvous_of({{"SLURM_STEP_NODELIST", "a,b"}, {"SLURM_JOB_ID", "20007"}}), "a:20008");
  EXPECT_EQ(rendezvous_of({{"SLURM_STEP_NODELIST", "node[07-09,12],b"}, {"MASTER_PORT", "5000"}}), "node07:5001");
  EXPECT_EQ(rendezvous_of({{"SLURM_STEP_NODELIST", "node[7,9]"}}), "node7:29501");
  EXPECT_EQ(rendezvous_of({}), "");
}

TEST(Launch, RefusesInvalidVariables) {
  EXPECT_THROW(launch_of({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), Error);
  EXPECT_THROW(launch_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), Error);
  EXPECT_THROW(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "-1"}}), Error);
}

}  // namespace
}  // namespace twiddle
