#pragma once
#include <gtest/gtest.h>

#include <cstring>

#include "tests/apps/runs_of_ranks.h"

namespace twiddle {

// The program on several processes, as mpirun starts it.
class RanksByMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (std::strlen(TWIDDLE_MPIEXEC) == 0) GTEST_SKIP() << "this build has no MPI, by which processes train together";
    // Open MPI requires these variables to run as root and on fewer cores than processes.
    for (const char* name :
         {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
      setenv(name, "1", 1);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);  // for Open MPI 5
    // Seconds for the other ranks to print messages before they are killed; Open MPI always waits that long.
    setenv("OMPI_MCA_odls_base_sigkill_timeout", "2", 1);
    setenv("PRTE_MCA_odls_base_sigkill_timeout", "2", 1);
    setenv("LSAN_OPTIONS", "detect_leaks=0", 0);  // where a sanitizer looks on: what Open MPI never frees is its own
    out_ = fresh_folder("ranks");
  }
  void TearDown() override {
    if (!out_.empty()) std::filesystem::remove_all(out_);
  }

  static std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
  }
  std::vector<std::string> digits(const std::vector<std::string>& more) const {
    return joined(
        {program_path(), "train", "models/digits.yaml", "--device", "cpu", "--workers", "1", "--out", out_.string()},
        more);
  }
  static std::vector<std::string> on(int ranks, const std::vector<std::string>& command) {
    return joined({"-n", std::to_string(ranks)}, command);
  }
  // Rank 0 runs the first command, rank 1 the second. A shell selects the command: mpiexec of Open MPI 5.0.7 crashes if
  // it gets two commands.
  static std::vector<std::string> apart(const std::vector<std::string>& first, const std::vector<std::string>& second) {
    const auto quoted = [](const std::vector<std::string>& command) {
      std::string text;
      for (const std::string& word : command) text += " '" + word + "'";
      return text;
    };
    return on(2, {"/bin/sh", "-c",
                  "if [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 ]; then exec" + quoted(first) + "; fi; exec" +
                      quoted(second)});
  }
  static Finished run(const std::vector<std::string>& arguments) { return run_program(arguments, TWIDDLE_MPIEXEC); }
  std::filesystem::path folder(int number) const { return out_ / ("digits-00" + std::to_string(number)); }

  std::filesystem::path out_;
};

}  // namespace twiddle
