#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/apps/ranks_by_mpi.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Two hosts made of namespaces, which have their own names and are connected only by a virtual cable. They need root.
// Tests run in parallel: each has separate hosts, named after its process.
class TwoHosts : public RanksByMpi {
 protected:
  void SetUp() override {
    RanksByMpi::SetUp();
    if (IsSkipped()) return;
    const std::string names = "a=" + first_ + "; b=" + second_ + "\n";
    const std::string make = names +
                             "set -e; unshare --uts hostname $a\n"
                             "for name in $a $b; do ip netns add $name; ip -n $name link set lo up; done\n"
                             "ip link add cable netns $a type veth peer name cable netns $b\n"
                             "ip -n $a addr add 10.77.0.1/24 dev cable; ip -n $a link set cable up\n"
                             "ip -n $b addr add 10.77.0.2/24 dev cable; ip -n $b link set cable up\n";
    remove();
    const Finished made = run_shell(make);
    if (made.code != 0) GTEST_SKIP() << "no network namespaces can be made here: " << made.err;
    // Replaces ssh: HOST COMMAND...
    const fs::path agent = out_ / "agent";
    std::ofstream(agent) << "#!/bin/sh\nhost=$1; shift\ncase $host in *.1) name=" << first_ << ";; *) name=" << second_
                         << ";; esac\n"
                         << enter_named << "sh -c \"$*\"\n";
    fs::permissions(agent, fs::perms::owner_all);
  }
  void TearDown() override {
    remove();
    RanksByMpi::TearDown();
  }
  void remove() const { run_shell("ip netns del " + first_ + "; ip netns del " + second_); }

  // Runs /bin/sh on the first host to start two ranks on each host. The two hosts' commands may differ.
  std::string on_each(const std::vector<std::string>& first, const std::vector<std::string>& second) const {
    const auto two_on = [](const std::string& address, const std::vector<std::string>& command) {
      std::string text = " -n 2 --host " + address + ":2 -x OMP_NUM_THREADS";
      for (const std::string& word : command) text += " '" + word + "'";
      return text;
    };
    return "name=" + first_ + "; " + enter_named + TWIDDLE_MPIEXEC + " --mca plm_rsh_agent " +
           (out_ / "agent").string() + " --mca orte_tmpdir_base " + out_.string() +
           " --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24" +
           two_on("10.77.0.1", first) + " :" + two_on("10.77.0.2", second);
  }
  std::string on_both(const std::vector<std::string>& command) const { return on_each(command, command); }

  static std::vector<pid_t> ranks_on(const std::string& host) {
    std::istringstream processes(run_shell("ip netns pids " + host).out);
    std::vector<pid_t> ranks;
    for (std::string id; processes >> id;)
      if (field_of("/proc/" + id, "Name") == "twiddle") ranks.push_back(std::stoi(id));
    return ranks;
  }

  static bool runs(pid_t process) { return fs::exists("/proc/" + std::to_string(process)); }

  // Shell code that moves the process to the host $name.
  static constexpr const char* enter_named =
      "exec ip netns exec $name unshare --uts sh -c 'hostname '$name' && exec \"$@\"' sh ";
  const std::string first_ = "twiddle-a" + std::to_string(getpid());
  const std::string second_ = "twiddle-b" + std::to_string(getpid());
};

TEST_F(TwoHosts, TrainAsOneProcess) {
  ASSERT_EQ(run(on(1, digits(twenty_steps))).code, 0);
  const Finished four = run_shell(on_both(digits(twenty_steps)));
  ASSERT_EQ(four.code, 0) << four.err;
  EXPECT_NE(four.err.find("10 steps of 32 = 4 x 8"), std::string::npos) << four.err;
  const std::string hosts = "2 on " + first_ + " with 1 thread each, 2 on " + second_ + " with 1 thread each";
  EXPECT_EQ(count(read_text(folder(2) / "train.log"), hosts), 1u) << four.err;
  EXPECT_LT(difference(weights_at(folder(2), "20"), weights_at(folder(1), "20")), 1e-5);
  const fs::path checkpoint = folder(2) / "checkpoints" / "step-00000010";
  ASSERT_EQ(run(on(2, {program_path(), "train", "--resume", checkpoint.string()})).code, 0);
  EXPECT_LT(difference(weights_at(folder(2), "20"), weights_at(folder(1), "20")), 1e-5);
}

TEST_F(TwoHosts, RefuseDifferentConfigInOneMessage) {
  const Finished mixed = run_shell(on_each(digits({"--lr", "0.1"}), digits({"--lr", "0.2"})));
  EXPECT_EQ(mixed.code, 2);
  EXPECT_EQ(count(mixed.err, "error: "), 1u) << mixed.err;
  for (const std::string rank : {"rank 2", "rank 3"})
    EXPECT_EQ(count(mixed.err, rank + " on " + second_ +
                                   " has another config: 'learning_rate: 0.2', on rank 0 'learning_rate: 0.1'"),
              1u)
        << mixed.err;
}

TEST_F(TwoHosts, NameCheckpointIfRankIsKilled) {
  Program program({"-c", on_both(digits({"--epochs", "100000", "--set", "train.checkpoint_every=7"}))}, "/bin/sh");
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  const std::vector<pid_t> here = ranks_on(first_), there = ranks_on(second_);
  ASSERT_EQ(here.size(), 2u);
  ASSERT_EQ(there.size(), 2u);
  kill(there[0], SIGKILL);
  EXPECT_NE(program.wait(), 0);
  // mpirun may exit before its process on the second host; ctest stops a test that waits forever.
  for (const pid_t rank : {here[0], here[1], there[0], there[1]})
    while (runs(rank)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::string err = program.err();
  EXPECT_NE(err.find(" disconnected unexpectedly; stopping all ranks"), std::string::npos) << err;
  EXPECT_NE(err.find("last checkpoint: " + (folder(1) / "checkpoints" / "step-").string()), std::string::npos) << err;
}

// mpirun itself may continue to wait for its process on the unreachable host; the ranks do not.
TEST_F(TwoHosts, ExitIfHostIsUnreachable) {
  Program program({"-c", on_both(digits({"--epochs", "100000", "--set", "train.checkpoint_every=7"}))}, "/bin/sh");
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  const std::vector<pid_t> here = ranks_on(first_);
  ASSERT_EQ(here.size(), 2u);
  run_shell("ip -n " + second_ + " link set cable down");
  for (const pid_t rank : here) EXPECT_TRUE(program.comes_to([&] { return !runs(rank); }));
  program.signal(SIGKILL);
  EXPECT_NE(program.err().find("no heartbeat from rank "), std::string::npos) << program.err();
  EXPECT_NE(program.err().find("last checkpoint: "), std::string::npos) << program.err();
}

}  // namespace
}  // namespace twiddle
