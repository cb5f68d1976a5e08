#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "tests/models/small_run.h"

namespace twiddle {

namespace {

constexpr std::int64_t width = 20000;  // large enough that a kill often falls within a write

// Saves step after step, with all values equal to the step, until it is killed.
[[noreturn]] void save_for_ever(const std::string& path, std::int64_t step) {
  CheckpointStore store(path, 2);
  SmallRun run(width);
  for (;; ++step) {
    run.set(static_cast<float>(step));
    RunState state;
    state.step = step;
    state.loss_sum = static_cast<double>(step);
    store.save(run.ctx, run.net, run.optimizer, state, {});
    store.save_best(run.ctx, run.net, {}, state);
  }
}

void wait_for_a_save(const CheckpointStore& store) {
  const auto newest = [&] {
    const std::vector<std::string> all = store.list();
    return all.empty() ? std::string() : std::filesystem::path(all.back()).filename().string();
  };
  const std::string before = newest();
  for (int tries = 0; tries < 10000 && newest() == before; ++tries) usleep(1000);
}

}  // namespace

TEST(KillDuringSave, LeavesIntactNewestCheckpoint) {
  const std::string path = fresh_path("kill_during_save");
  SmallRun run(width);
  CheckpointStore store(path, 2);
  store.save(run.ctx, run.net, run.optimizer, {}, {});
  store.save_best(run.ctx, run.net, {}, {});

  std::mt19937 random(1);
  std::int64_t step = 0;
  for (int round = 0; round < 30; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_for_ever(path, step + 1);
    // Every third child may finish a save first, however busy the machine is; the others are killed at any point.
    if (round % 3 == 0) wait_for_a_save(store);
    usleep(std::uniform_int_distribution<unsigned>(500, 30000)(random));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";

    run.set(-1);
    const RunState state = restore_checkpoint(newest_checkpoint(path), run.ctx, run.net, run.optimizer);
    EXPECT_GE(state.step, step);
    EXPECT_EQ(state.loss_sum, static_cast<double>(state.step));
    EXPECT_TRUE(run.all_are(static_cast<float>(state.step))) << state.step;
    EXPECT_NO_THROW(load_weights(find_weights(path), run.ctx, run.net));
    step = state.step;
  }
  EXPECT_GT(step, 0) << "no save was ever finished: the test proves nothing";

  RunState last;
  last.step = step + 1;
  store.save(run.ctx, run.net, run.optimizer, last, {});
  for (const auto& entry : std::filesystem::directory_iterator(path + "/checkpoints"))
    EXPECT_TRUE(entry.path().filename().string().starts_with("step-")) << entry.path();
}

}  // namespace twiddle
