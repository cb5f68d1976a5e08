#include <gtest/gtest.h>

#include <cstdlib>

#include "models/checkpoints/safetensors.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Returns the settings that the OpenMP runtime prints, for the called program and any program that it restarts.
std::string thread_settings() {
  setenv("OMP_DISPLAY_ENV", "verbose", 1);
  const std::string reported = run_program({"devices"}).err;
  unsetenv("OMP_DISPLAY_ENV");  // other tests of this process start programs, too
  return reported;
}

TEST(Threads, SpinBrieflyUnlessUserSetsOtherwise) {
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("OMP_WAIT_POLICY");
  const std::string by_itself = thread_settings();
  EXPECT_NE(by_itself.find("GOMP_SPINCOUNT = '10000'"), std::string::npos) << by_itself;

  setenv("OMP_WAIT_POLICY", "passive", 1);
  const std::string passive = thread_settings();
  EXPECT_EQ(passive.find("GOMP_SPINCOUNT = '10000'"), std::string::npos) << passive;
  unsetenv("OMP_WAIT_POLICY");
}

// Without this error, OpenMP's runtime would abort in the first computation.
TEST(Threads, FailVerbsIfTheyCannotStart) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "it limits the address space";
#endif
  const fs::path folder = fresh_folder("threads");
  const std::string runs = (folder / "runs").string(), run = runs + "/digits-001";
  const Finished train = run_program(
      {"train", "models/digits.yaml", "--epochs", "1", "--limit-batches", "1", "--out", runs, "--device", "cpu"});
  ASSERT_EQ(train.code, 0) << train.err;
  const std::string arrays = (folder / "arrays.safetensors").string();
  const auto ones = [](const Shape& shape) {
    return HostArray{DType::f32, shape, std::vector<std::uint8_t>(static_cast<std::size_t>(4 * count_of(shape)))};
  };
  write_safetensors(arrays, {{{"input", ones({1, 1, 4, 4})}, {"weight", ones({1, 1, 3, 3})}}, {}});
  std::ofstream(folder / "a.png", std::ios::binary) << "never read";

  for (const std::string& command :
       {"eval " + run + " --threads 4000", "predict " + run + " " + (folder / "a.png").string() + " --threads 4000",
        std::string("time models/digits.yaml --threads 4000"), std::string("tune models/digits.yaml --threads 4000"),
        "conv " + arrays + " " + arrays + ".out --threads 1000"}) {
    const Finished finished = run_shell("ulimit -v 1500000; exec \"$TWIDDLE\" " + command + " --device cpu");
    EXPECT_EQ(finished.code, 4) << command << finished.err;
    EXPECT_NE(finished.err.find("error: cannot start "), std::string::npos) << command << finished.err;
  }
  fs::remove_all(folder);
}

TEST(Threads, PlanningVerbsStartNoThreads) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "it limits the address space";
#endif
  for (const char* const verb : {"check", "summary"}) {
    const Finished finished = run_shell(std::string("ulimit -v 1500000; exec \"$TWIDDLE\" ") + verb +
                                        " models/digits.yaml --threads 4000 --device cpu");
    EXPECT_EQ(finished.code, 0) << verb << finished.err;
  }
}

}  // namespace
}  // namespace twiddle
