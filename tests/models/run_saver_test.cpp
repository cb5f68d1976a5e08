#include "models/training/run_saver.h"

#include <gtest/gtest.h>

#include "tests/models/small_run.h"

namespace twiddle {
namespace {

TEST(RunSaver, SavesOnlyIfChanged) {
  SmallRun run;
  const std::string folder = fresh_path("run_saver");
  RunSaver saver(folder, {}, {});
  EXPECT_TRUE(saver.has_to_save());
  EXPECT_EQ(saver.last_checkpoint(), "");
  RunState state;
  state.step = 7;
  saver.save(run.ctx, run.net, run.optimizer, state, {});
  EXPECT_TRUE(saver.last_checkpoint().ends_with("step-00000007")) << saver.last_checkpoint();
  EXPECT_FALSE(saver.has_to_save());
  saver.changed();
  EXPECT_TRUE(saver.has_to_save());
}

TEST(RunSaver, HasNothingToSaveAfterResume) {
  RunSaver saver(fresh_path("run_saver_resumed"), {}, {});
  saver.resume("there/step-00000003");
  EXPECT_FALSE(saver.has_to_save());
  EXPECT_EQ(saver.last_checkpoint(), "there/step-00000003");
}

TEST(RunSaver, SavesNothingWithoutAFolder) {
  const RunSaver saver("", {}, {});
  EXPECT_FALSE(saver.has_to_save());
}

}  // namespace
}  // namespace twiddle
