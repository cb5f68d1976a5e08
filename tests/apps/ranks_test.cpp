#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "models/safetensors.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// The program on several processes, as mpirun starts it.
class RanksByMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (std::strlen(TWIDDLE_MPIEXEC) == 0) GTEST_SKIP() << "this build has no MPI, by which processes train together";
    // Open MPI wants to be told that it may run as root, and on fewer cores than processes.
    for (const char* name :
         {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
      setenv(name, "1", 1);
    // Seconds in which the others may tell something before they are killed, too; Open MPI always waits that long.
    setenv("OMPI_MCA_odls_base_sigkill_timeout", "2", 1);
    out_ = fresh_folder("ranks");
  }
  void TearDown() override {
    if (!out_.empty()) fs::remove_all(out_);
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
  static Finished run(const std::vector<std::string>& arguments) { return run_program(arguments, TWIDDLE_MPIEXEC); }
  fs::path folder(int number) const { return out_ / ("digits-00" + std::to_string(number)); }

  fs::path out_;
};

std::vector<std::vector<float>> weights_at(const fs::path& run, const std::string& step) {
  std::vector<std::vector<float>> all;
  const SafeTensors contents =
      read_safetensors((run / "checkpoints" / ("step-000000" + step) / "model.safetensors").string());
  for (const auto& [name, array] : contents.arrays) {
    std::vector<float>& values = all.emplace_back(array.bytes.size() / sizeof(float));
    std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  }
  return all;
}

// Of each tensor's largest difference, as a share of its largest number, the largest.
double difference(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  EXPECT_EQ(a.size(), b.size());
  double share = 0;
  for (std::size_t tensor = 0; tensor < a.size(); ++tensor) {
    float most = 0, largest = 0;
    for (std::size_t i = 0; i < a[tensor].size(); ++i) {
      most = std::max(most, std::abs(a[tensor][i] - b[tensor][i]));
      largest = std::max(largest, std::abs(b[tensor][i]));
    }
    share = std::max(share, static_cast<double>(most / largest));
  }
  return share;
}

const std::vector<std::string> twenty_steps{"--epochs",     "2",     "--limit-batches",         "10", "--set",
                                            "train.keep=9", "--set", "train.checkpoint_every=5"};

TEST_F(RanksByMpi, EndWithTheWeightsOfOneProcessAndWithTheSameBitsAgain) {
  const std::vector<std::string> command = digits(twenty_steps);
  ASSERT_EQ(run(on(1, command)).code, 0);
  const auto one = weights_at(folder(1), "20");
  const Finished two = run(on(2, command));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.err.find("10 steps of 32 = 2 x 16"), std::string::npos) << two.err;
  EXPECT_EQ(count(two.out, "best val-top1"), 1u) << two.out;
  EXPECT_LT(difference(weights_at(folder(2), "20"), one), 1e-5);
  ASSERT_EQ(run(on(4, command)).code, 0);
  EXPECT_LT(difference(weights_at(folder(3), "20"), one), 1e-5);
  ASSERT_EQ(run(on(4, command)).code, 0);
  EXPECT_EQ(weights_at(folder(4), "20"), weights_at(folder(3), "20"));
}

TEST_F(RanksByMpi, ACheckpointOfTwoGoesOnOnOneAndOnTwoAgain) {
  ASSERT_EQ(run(on(2, digits(twenty_steps))).code, 0);
  const auto untouched = weights_at(folder(1), "20");
  const auto resume = [&](int ranks, const std::string& step) {
    const fs::path checkpoint = folder(1) / "checkpoints" / ("step-000000" + step);
    return run(on(ranks, {program_path(), "train", "--resume", checkpoint.string()}));
  };
  ASSERT_EQ(resume(1, "05").code, 0);
  const Finished again = resume(2, "15");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.err.find("at step 15"), std::string::npos) << again.err;
  EXPECT_LT(difference(weights_at(folder(1), "20"), untouched), 1e-5);
}

TEST_F(RanksByMpi, RefuseOtherConfigsInOneMessage) {
  const std::vector<std::string> first = joined({"-n", "1"}, digits({"--lr", "0.1"}));
  const Finished mixed = run(joined(joined(first, {":", "-n", "1"}), digits({"--lr", "0.2"})));
  EXPECT_EQ(mixed.code, 2);
  EXPECT_EQ(count(mixed.err, "error: "), 1u) << mixed.err;
  EXPECT_NE(mixed.err.find("has another config: 'learning_rate: 0.2', on rank 0 'learning_rate: 0.1'"),
            std::string::npos)
      << mixed.err;
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(RanksByMpi, TellAMistakeThatAllHaveOnce) {
  const Finished uneven = run(on(3, digits({})));
  EXPECT_EQ(uneven.code, 2);
  EXPECT_EQ(count(uneven.err, "32 images cannot be shared evenly by 3: take 30 or 33"), 1u) << uneven.err;
}

std::string field_of(const fs::path& process, const std::string& name) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  return "";
}

// Processes of the program below that one.
std::vector<pid_t> ranks_of(pid_t mpirun) {
  std::vector<pid_t> ranks;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (field_of(entry.path(), "Name") != "twiddle") continue;
    std::string parent = field_of(entry.path(), "PPid");
    while (parent.size() > 1 && parent != std::to_string(mpirun)) parent = field_of("/proc/" + parent, "PPid");
    if (parent == std::to_string(mpirun)) ranks.push_back(std::stoi(entry.path().filename().string()));
  }
  return ranks;
}

bool has_checkpoint(const fs::path& run) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", none))
    if (entry.path().filename().string().starts_with("step-")) return true;
  return false;
}

const std::vector<std::string> endless{"--epochs", "100000", "--set", "train.checkpoint_every=20"};

TEST_F(RanksByMpi, OneThatIsKilledEndsAllAndTheLastCheckpointIsNamed) {
  Program program(on(2, digits(endless)), TWIDDLE_MPIEXEC);
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  const std::vector<pid_t> ranks = ranks_of(program.pid());
  ASSERT_EQ(ranks.size(), 2u);
  // Not the one that writes, which would leave a message to nobody.
  const std::string leader = read_text(folder(1) / ".lock");
  const pid_t other = leader.starts_with("pid " + std::to_string(ranks[0]) + " ") ? ranks[1] : ranks[0];
  kill(other, SIGKILL);
  EXPECT_NE(program.wait(), 0);
  const std::string err = program.err();
  EXPECT_NE(err.find("last checkpoint: " + (folder(1) / "checkpoints" / "step-").string()), std::string::npos) << err;
  // What is there is whole.
  const Finished resumed = run_program({"train", "--resume", folder(1).string(), "--epochs", "1", "--device", "cpu"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST_F(RanksByMpi, CtrlCOnAnySavesOnceAndEndsAll) {
  Program program(on(2, digits(endless)), TWIDDLE_MPIEXEC);
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  const std::vector<pid_t> ranks = ranks_of(program.pid());
  ASSERT_EQ(ranks.size(), 2u);
  kill(ranks[1], SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_EQ(count(program.err(), "saved step "), 1u) << program.err();
}

}  // namespace
}  // namespace twiddle
