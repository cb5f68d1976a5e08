#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/apps/ranks_by_mpi.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Two hosts made of network namespaces, which see each other by a cable alone. They need root. Tests run side by side:
// each has hosts of its own, named after its process.
class TwoHosts : public RanksByMpi {
 protected:
  void SetUp() override {
    RanksByMpi::SetUp();
    if (IsSkipped()) return;
    const std::string names = "a=" + first_ + "; b=" + second_ + "\n";
    const std::string make = names +
                             "set -e\n"
                             "for name in $a $b; do ip netns add $name; ip -n $name link set lo up; done\n"
                             "ip link add cable netns $a type veth peer name cable netns $b\n"
                             "ip -n $a addr add 10.77.0.1/24 dev cable; ip -n $a link set cable up\n"
                             "ip -n $b addr add 10.77.0.2/24 dev cable; ip -n $b link set cable up\n";
    remove();
    const Finished made = run_shell(make);
    if (made.code != 0) GTEST_SKIP() << "no network namespaces can be made here: " << made.err;
    // In the place of ssh: HOST COMMAND...
    const fs::path agent = out_ / "agent";
    std::ofstream(agent) << "#!/bin/sh\nhost=$1; shift\ncase $host in *.1) name=" << first_ << ";; *) name=" << second_
                         << ";; esac\n"
                            "exec ip netns exec $name sh -c \"$*\"\n";
    fs::permissions(agent, fs::perms::owner_all);
  }
  void TearDown() override {
    remove();
    RanksByMpi::TearDown();
  }
  void remove() const { run_shell("ip netns del " + first_ + "; ip netns del " + second_); }

  // What /bin/sh starts on the first host: two ranks on each of both.
  std::string on_both(const std::vector<std::string>& command) const {
    std::string text = "exec ip netns exec " + first_ + " " + TWIDDLE_MPIEXEC +
                       " -n 4 --host 10.77.0.1:2,10.77.0.2:2 --mca plm_rsh_agent " + (out_ / "agent").string() +
                       " --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include "
                       "10.77.0.0/24 -x OMP_NUM_THREADS";
    for (const std::string& word : command) text += " '" + word + "'";
    return text;
  }

  const std::string first_ = "twiddle_a" + std::to_string(getpid());
  const std::string second_ = "twiddle_b" + std::to_string(getpid());
};

TEST_F(TwoHosts, TrainAsOneProcessDoes) {
  ASSERT_EQ(run(on(1, digits(twenty_steps))).code, 0);
  const Finished four = run_shell(on_both(digits(twenty_steps)));
  ASSERT_EQ(four.code, 0) << four.err;
  EXPECT_NE(four.err.find("10 steps of 32 = 4 x 8"), std::string::npos) << four.err;
  EXPECT_LT(difference(weights_at(folder(2), "20"), weights_at(folder(1), "20")), 1e-5);
  const fs::path checkpoint = folder(2) / "checkpoints" / "step-00000010";
  ASSERT_EQ(run(on(2, {program_path(), "train", "--resume", checkpoint.string()})).code, 0);
  EXPECT_LT(difference(weights_at(folder(2), "20"), weights_at(folder(1), "20")), 1e-5);
}

// mpirun itself may wait on for its own process on the host that it cannot reach any more; the ranks do not.
TEST_F(TwoHosts, OneThatCannotBeReachedEndsAll) {
  const std::vector<std::string> command = digits({"--epochs", "100000", "--set", "train.checkpoint_every=7"});
  Program program({"-c", on_both(command)}, "/bin/sh");
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  const std::vector<pid_t> here = ranks_of(program.pid());
  ASSERT_FALSE(here.empty());
  run_shell("ip -n " + second_ + " link set cable down");
  for (const pid_t rank : here)
    EXPECT_TRUE(program.comes_to([&] { return !fs::exists("/proc/" + std::to_string(rank)); }));
  program.signal(SIGKILL);
  EXPECT_NE(program.err().find("gives no sign of life for"), std::string::npos) << program.err();
  EXPECT_NE(program.err().find("last checkpoint: "), std::string::npos) << program.err();
}

}  // namespace
}  // namespace twiddle
