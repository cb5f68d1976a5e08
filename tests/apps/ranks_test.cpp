#include <gtest/gtest.h>

#include "apps/ranks/ranks.h"
#include "apps/report/metrics.h"
#include "apps/version.h"
#include "framework/error.h"
#include "framework/ranks/launch.h"
#include "tests/apps/ranks_by_mpi.h"
#include "tests/models/small_training.h"
#include "tests/support/thread_ranks.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

TEST(SharedFacts, ReportDifferingLines) {
  const std::string folder = "images: /a/folder/whose/name/is/longer/than/a/message/is/meant/for/";
  const std::vector<std::string> configs{"version: 1\n" + folder + "red", "version: 1\n" + folder + "blue",
                                         "version: 1\n" + folder + "red\n  seed: 2"};
  const auto message_of = [&](std::vector<std::string> texts) {
    std::string message;
    try {
      on_ranks(static_cast<int>(texts.size()), [&](const std::shared_ptr<Communicator>& ranks) {
        expect_alike(*ranks, {{"program", "1.0", "take one"}, {"config", texts.at(ranks->rank()), "take this"}});
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      message = error.what();
    }
    return message;
  };
  EXPECT_EQ(message_of({configs[0], configs[0]}), "");
  const std::string on = " on " + host_name() + " has another config: ";
  EXPECT_EQ(message_of(configs),
            "the ranks cannot train together:"
            "\n  rank 1" +
                on +
                "'...essage/is/meant/for/blue', on rank 0 '...essage/is/meant/for/red'; take this"
                "\n  rank 2" +
                on + "'seed: 2', on rank 0 'nothing'; take this");
}

TEST_F(RanksByMpi, MatchOneProcessAndAreReproducible) {
  const std::vector<std::string> command = digits(twenty_steps);
  ASSERT_EQ(run(on(1, command)).code, 0);
  const auto one = weights_at(folder(1), "20");
  const Finished two = run(on(2, command));
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.err.find("10 steps of 32 = 2 x 16"), std::string::npos) << two.err;
  EXPECT_EQ(count(two.out, "best val-top1"), 1u) << two.out;
  const std::string log = read_text(folder(2) / "train.log");
  EXPECT_NE(log.find("2 on " + host_name() + " with 1 thread each"), std::string::npos) << log;
  EXPECT_LT(difference(weights_at(folder(2), "20"), one), 1e-5);
  ASSERT_EQ(run(on(4, command)).code, 0);
  EXPECT_LT(difference(weights_at(folder(3), "20"), one), 1e-5);
  ASSERT_EQ(run(on(4, command)).code, 0);
  EXPECT_EQ(weights_at(folder(4), "20"), weights_at(folder(3), "20"));
}

TEST_F(RanksByMpi, ResumeOnOtherNumberOfRanks) {
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
  // A finished run.
  EXPECT_EQ(run(on(2, {program_path(), "train", "--resume", folder(1).string()})).code, 0);
}

TEST_F(RanksByMpi, RefuseAnotherBuild) {
  std::vector<std::string> other = digits({});
  other.front() = TWIDDLE_OF_ANOTHER_BUILD;
  const Finished mixed = run(apart(digits({}), other));
  EXPECT_EQ(mixed.code, 2);
  EXPECT_EQ(count(mixed.err, "error: "), 1u) << mixed.err;
  const std::string refusal = "rank 1 on " + host_name() +
                              " has another program: '0.0.0 another commit of another compiler', on rank 0 '" +
                              version() + " " + commit() + " " + compiler() + "'; give all hosts the same one";
  EXPECT_NE(mixed.err.find(refusal), std::string::npos) << mixed.err;
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(RanksByMpi, RefuseOtherConfigsInOneMessage) {
  const Finished mixed = run(apart(digits({"--lr", "0.1"}), digits({"--lr", "0.2"})));
  EXPECT_EQ(mixed.code, 2);
  EXPECT_EQ(count(mixed.err, "error: "), 1u) << mixed.err;
  EXPECT_NE(mixed.err.find("has another config: 'learning_rate: 0.2', on rank 0 'learning_rate: 0.1'"),
            std::string::npos)
      << mixed.err;
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(RanksByMpi, RefuseOtherFlagsInOneMessage) {
  const auto refusal_of = [&](const std::vector<std::string>& first, const std::vector<std::string>& second) {
    const Finished mixed = run(apart(first, second));
    EXPECT_EQ(mixed.code, 2);
    EXPECT_EQ(count(mixed.err, "error: "), 1u) << mixed.err;
    return mixed.err;
  };
  const auto expect = [](const std::string& refusal, const std::string& there, const std::string& here) {
    const std::string text = "rank 1 on " + host_name() + " has another command: '" + there + "', on rank 0 '" + here +
                             "'; start all with the same flags";
    EXPECT_NE(refusal.find(text), std::string::npos) << refusal;
  };
  expect(refusal_of(digits({}), digits({"--limit-batches", "3"})), "--limit-batches 3", "--limit-batches not given");
  expect(refusal_of(digits({"--limit-batches", "4"}), digits({"--limit-batches", "3"})), "--limit-batches 3",
         "--limit-batches 4");
  expect(refusal_of(digits({"--overfit-batch"}), digits({})), "--overfit-batch not given", "--overfit-batch true");
  expect(refusal_of(digits({"--print-config"}), digits({})), "--print-config not given", "--print-config true");
  expect(refusal_of(digits({}), {program_path(), "train", "--resume", folder(1).string(), "--device", "cpu"}),
         "--resume", "--resume not given");
  EXPECT_TRUE(fs::is_empty(out_));
  const std::vector<std::string> time{program_path(), "time", "models/digits.yaml", "--device", "cpu"};
  expect(refusal_of(joined(time, {"--steps", "2"}), joined(time, {"--steps", "3"})), "--steps 3", "--steps 2");
  const std::string seed = refusal_of(joined(time, {"--seed", "2"}), joined(time, {"--seed", "3"}));
  EXPECT_NE(seed.find("has another config: 'seed: 3', on rank 0 'seed: 2'"), std::string::npos) << seed;
}

TEST_F(RanksByMpi, RefuseOtherWeightsAndOtherCheckpoints) {
  ASSERT_EQ(run(on(1, digits(twenty_steps))).code, 0);
  const auto checkpoint = [&](const std::string& step) {
    return (folder(1) / "checkpoints" / ("step-000000" + step)).string();
  };
  const auto refusal_of = [&](const std::vector<std::string>& first, const std::vector<std::string>& second) {
    const Finished mixed = run(apart(first, second));
    EXPECT_EQ(mixed.code, 2);
    EXPECT_EQ(count(mixed.err, "error: "), 1u) << mixed.err;
    return mixed.err;
  };
  const auto from = [&](const std::string& step) {
    return digits({"--weights", checkpoint(step) + "/model.safetensors"});
  };
  const std::string weights = refusal_of(from("05"), from("20"));
  EXPECT_NE(weights.find("rank 1 on "), std::string::npos) << weights;
  EXPECT_NE(weights.find(" has another set of weights: "), std::string::npos) << weights;
  const std::string state = refusal_of({program_path(), "train", "--resume", checkpoint("10")},
                                       {program_path(), "train", "--resume", checkpoint("15")});
  EXPECT_NE(state.find(" has another state of training: 'step 15', on rank 0 'step 10'"), std::string::npos) << state;
}

// Each of two ranks starts in a separate folder that contains its list of images: one path for both, as on two
// machines.
class RanksWithTheirOwnImages : public RanksByMpi {
 protected:
  Finished train(const std::string& first_list, const std::string& second_list) const {
    const fs::path config = out_ / "pictures.yaml";
    std::ofstream(config)
        << "version: 1\n"
           "model: {input: [1, 8, 8], layers: [linear: {outputs: 4}]}\n"
           "data: {train: {format: image_list, channels: 1, file: /proc/self/cwd/list.txt}, workers: 0}\n"
           "train: {epochs: 2, batch_size: 4}\n";
    const std::vector<std::string> command{program_path(), "train", config, "--device", "cpu", "--out", out_};
    const auto in_folder_of = [&command](const std::string& list) {
      return joined({"env", "-C", fs::path(list).parent_path()}, command);
    };
    return run(apart(in_folder_of(first_list), in_folder_of(second_list)));
  }
};

TEST_F(RanksWithTheirOwnImages, ReportRankThatWaitsForImages) {
  const std::string fast = write_pictures("fast", 8), slow = write_pictures("slow", 8);
  make_slow_to_read(slow);
  const Finished trained = train(fast, slow);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const History history = read_history(out_ / "pictures-001");
  ASSERT_EQ(history.epochs.size(), 2u);
  ASSERT_EQ(history.steps.size(), 4u);
  for (const DataWait& wait : {history.epochs[1].wait, history.steps[3].wait}) {
    ASSERT_EQ(wait.shares.size(), 2u);
    EXPECT_EQ(wait.rank_of_largest(), 1);
  }
}

TEST_F(RanksWithTheirOwnImages, RefuseOtherImages) {
  const auto refusal_of = [&](const std::string& first, const std::string& second) {
    const Finished mixed = train(first, second);
    EXPECT_EQ(mixed.code, 2);
    EXPECT_EQ(count(mixed.err, "error: "), 1u) << mixed.err;
    return mixed.err;
  };
  const std::string list = write_pictures("whole", 8);
  const std::string fewer = refusal_of(list, write_pictures("fewer", 7));
  EXPECT_NE(fewer.find(" has another training set: '7 images, "), std::string::npos) << fewer;
  const std::string another = write_pictures("another", 8);
  fs::copy_file(fs::path(list).parent_path() / "1.png", fs::path(another).parent_path() / "6.png",
                fs::copy_options::overwrite_existing);
  const std::string changed = refusal_of(list, another);
  EXPECT_NE(changed.find(" has another training set: '8 images, "), std::string::npos) << changed;
  EXPECT_NE(changed.find("give all hosts the same files"), std::string::npos) << changed;
}

TEST_F(RanksByMpi, ReportSharedErrorOnce) {
  const Finished uneven = run(on(3, digits({})));
  EXPECT_EQ(uneven.code, 2);
  EXPECT_EQ(count(uneven.err, "32 images cannot be split evenly over 3 ranks: use 30 or 33"), 1u) << uneven.err;
}

const std::vector<std::string> endless{"--epochs", "100000", "--set", "train.checkpoint_every=20"};

TEST_F(RanksByMpi, NameCheckpointIfRankIsKilled) {
  Program program(on(2, digits(endless)), TWIDDLE_MPIEXEC);
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  kill(two_ranks(program.pid(), folder(1)).other, SIGKILL);
  EXPECT_NE(program.wait(), 0);
  const std::string err = program.err();
  EXPECT_NE(err.find("rank 1 disconnected unexpectedly; stopping all ranks"), std::string::npos) << err;
  EXPECT_NE(err.find("last checkpoint: " + (folder(1) / "checkpoints" / "step-").string()), std::string::npos) << err;
  // The existing checkpoint is intact.
  const Finished resumed = run_program({"train", "--resume", folder(1).string(), "--epochs", "1", "--device", "cpu"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST_F(RanksByMpi, SaveOnceIfAnyIsInterrupted) {
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
