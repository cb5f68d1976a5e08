#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "models/training/weight_average.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "framework/error.h"
#include "tests/models/small_run.h"

namespace twiddle {

namespace {

namespace fs = std::filesystem;

// Returns the message of what a call throws, or "" if it throws nothing.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_within(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas not: " << part;
}

void cut_short(const std::string& path) {
  fs::resize_file(path, fs::file_size(path) - 1);
}

RunState at_step(std::int64_t step) {
  RunState state;
  state.step = step;
  return state;
}

// The steps of a store's checkpoints.
std::vector<std::string> names(const CheckpointStore& store) {
  std::vector<std::string> all;
  for (const std::string& folder : store.list()) all.push_back(fs::path(folder).filename());
  return all;
}

}  // namespace

TEST(Checkpoint, RestoresEverything) {
  CheckpointStore store(fresh_path("checkpoint_round"), 3);
  SmallRun run;
  run.set(7);
  run.ctx.random.restore(0xffffffffffffffffu, 12345);
  RunState saved;
  saved.step = 17, saved.epoch = 2, saved.position = 160, saved.batch = 5, saved.best_score = 0.1 + 0.2;
  saved.best_epoch = 1, saved.images = 90, saved.loss_sum = 1e300 / 3, saved.right = 30, saved.limit_batches = 6;
  const std::string folder = store.save(run.ctx, run.net, run.optimizer, saved, {"cat", "dog"});

  SmallRun other;
  const RunState state = restore_checkpoint(folder, other.ctx, other.net, other.optimizer);
  EXPECT_TRUE(other.all_are(7));
  EXPECT_EQ(other.optimizer.state().size(), 6u);
  EXPECT_EQ(other.ctx.random.seed(), 0xffffffffffffffffu);
  EXPECT_EQ(other.ctx.random.position(), 12345u);
  EXPECT_EQ(state.step, 17);
  EXPECT_EQ(state.epoch, 2);
  EXPECT_EQ(state.position, 160);
  EXPECT_EQ(state.batch, 5);
  EXPECT_EQ(state.right, 30);
  EXPECT_EQ(state.limit_batches, 6);
  EXPECT_EQ(state.best_score, 0.1 + 0.2);
  EXPECT_EQ(state.best_epoch, 1);
  EXPECT_EQ(state.images, 90);
  EXPECT_EQ(state.loss_sum, 1e300 / 3);
}

TEST(Checkpoint, DamagedFileLeavesNetworkUnchanged) {
  CheckpointStore store(fresh_path("checkpoint_damage"), 3);
  SmallRun run;
  run.set(7);
  for (const char* file : {"/model.safetensors", "/state.safetensors"}) {
    const std::string folder = store.save(run.ctx, run.net, run.optimizer, at_step(1), {});
    cut_short(folder + file);
    SmallRun other;
    other.set(3);
    expect_within("truncated", error_of([&] { restore_checkpoint(folder, other.ctx, other.net, other.optimizer); }));
    EXPECT_TRUE(other.all_are(3));
  }
}

TEST(Checkpoint, RefusesAnotherNetworkOrOptimizer) {
  CheckpointStore store(fresh_path("checkpoint_misfit"), 3);
  SmallRun run;
  const std::string folder = store.save(run.ctx, run.net, run.optimizer, at_step(1), {});

  SmallRun wider(4);
  wider.set(3);
  expect_within("'conv1.weight' is 2x3 in the file, 2x4 in the model",
                error_of([&] { restore_checkpoint(folder, wider.ctx, wider.net, wider.optimizer); }));
  EXPECT_TRUE(wider.all_are(3));

  SmallRun same;
  Recorder adam("adam");
  expect_within("holds the state of optimizer 'recorder', this run uses 'adam'",
                error_of([&] { restore_checkpoint(folder, same.ctx, same.net, adam); }));
}

TEST(Checkpoint, RefusesFilesOfDifferentSaves) {
  CheckpointStore store(fresh_path("checkpoint_mixed"), 3);
  SmallRun run;
  const std::string first = store.save(run.ctx, run.net, run.optimizer, at_step(1), {});
  run.set(2);
  const std::string second = store.save(run.ctx, run.net, run.optimizer, at_step(2), {});
  fs::copy_file(first + "/model.safetensors", second + "/model.safetensors", fs::copy_options::overwrite_existing);
  expect_within("not of one save", error_of([&] { check_checkpoint(second); }));
}

TEST(Checkpoint, RefusesInvalidState) {
  CheckpointStore store(fresh_path("checkpoint_state"), 3);
  SmallRun run;
  const std::string folder = store.save(run.ctx, run.net, run.optimizer, at_step(1), {});
  const std::string path = folder + "/state.safetensors";
  const SafeTensors whole = read_safetensors(path);
  const auto restore_with = [&](const std::string& key, const std::string& value) {
    SafeTensors changed = whole;
    changed.metadata[key] = value;
    write_safetensors(path, changed);
    return error_of([&] { restore_checkpoint(folder, run.ctx, run.net, run.optimizer); });
  };
  expect_within("'run.step' in its metadata is 'x', not a number", restore_with("run.step", "x"));
  expect_within("'run.step' in its metadata is '-1', below 0", restore_with("run.step", "-1"));
  expect_within("not a number that fits", restore_with("run.epoch", "99999999999999999999"));
  expect_within("format version '2'", restore_with("format_version", "2"));

  SafeTensors changed = whole;
  changed.arrays["optimizer.mean.fc.weight"] = changed.arrays.at("optimizer.mean.conv1.bias");
  write_safetensors(path, changed);
  expect_within("'optimizer.mean.fc.weight' 2 belongs to no parameter",
                error_of([&] { restore_checkpoint(folder, run.ctx, run.net, run.optimizer); }));
}

TEST(CheckpointStore, KeepsTheNewest) {
  CheckpointStore store(fresh_path("store_keep"), 2);
  SmallRun run;
  EXPECT_TRUE(store.list().empty());
  for (const int step : {1, 2, 9, 10, 300}) store.save(run.ctx, run.net, run.optimizer, at_step(step), {});
  EXPECT_EQ(names(store), (std::vector<std::string>{"step-00000010", "step-00000300"}));
}

TEST(CheckpointStore, KeepsAtLeastOne) {
  CheckpointStore store(fresh_path("store_keep_none"), 0);
  SmallRun run;
  for (const int step : {1, 2}) store.save(run.ctx, run.net, run.optimizer, at_step(step), {});
  EXPECT_EQ(names(store), std::vector<std::string>{"step-00000002"});
}

TEST(CheckpointStore, KeepsNewestSaveAfterEarlierResume) {
  const std::string path = fresh_path("store_resumed");
  CheckpointStore store(path, 2);
  SmallRun run;
  for (const int step : {100, 200}) store.save(run.ctx, run.net, run.optimizer, at_step(step), {});
  const std::string folder = store.save(run.ctx, run.net, run.optimizer, at_step(150), {});
  EXPECT_EQ(names(store), (std::vector<std::string>{"step-00000100", "step-00000150"}));
  EXPECT_EQ(newest_checkpoint(path), folder);
  EXPECT_TRUE(fs::exists(path + "/checkpoints/abandoned-step-00000200/model.safetensors"));
}

TEST(CheckpointStore, RemovesAbandonedStepWhenReachedAgain) {
  const std::string path = fresh_path("store_abandoned");
  CheckpointStore store(path, 2);
  SmallRun run;
  const auto save = [&](std::int64_t step) { store.save(run.ctx, run.net, run.optimizer, at_step(step), {}); };
  const auto abandoned = [&](std::int64_t step) {
    return fs::exists(path + "/checkpoints/abandoned-step-00000" + std::to_string(step));
  };
  for (const int step : {300, 400, 200}) save(step);
  EXPECT_TRUE(abandoned(300) && abandoned(400));
  save(100);  // three are abandoned, of which as many stay as there are checkpoints
  EXPECT_TRUE(!abandoned(200) && abandoned(300) && abandoned(400));
  save(300);
  EXPECT_TRUE(!abandoned(300) && abandoned(400));
  save(500);
  EXPECT_FALSE(abandoned(400));
}

TEST(CheckpointStore, ReplacesSameStep) {
  const std::string path = fresh_path("store_twice");
  CheckpointStore store(path, 2);
  SmallRun run;
  RunState state = at_step(1);
  const std::string folder = store.save(run.ctx, run.net, run.optimizer, state, {});
  cut_short(folder + "/model.safetensors");
  run.set(5), state.epoch = 1;
  EXPECT_EQ(store.save(run.ctx, run.net, run.optimizer, state, {}), folder);
  EXPECT_EQ(restore_checkpoint(folder, run.ctx, run.net, run.optimizer).epoch, 1);
  EXPECT_TRUE(run.all_are(5));
  EXPECT_EQ(std::distance(fs::directory_iterator(path + "/checkpoints"), {}), 1);
}

TEST(CheckpointStore, RemovesFilesOfKilledSave) {
  const std::string path = fresh_path("store_stale");
  fs::create_directories(path + "/checkpoints/.tmp-step-00000004");
  std::ofstream(path + "/checkpoints/.tmp-step-00000004/model.safetensors") << "half";
  std::ofstream(path + "/.best.safetensors.tmp-4711") << "half";
  std::ofstream(path + "/checkpoints/.probe.tmp-4711") << "half";
  CheckpointStore store(path, 2);
  SmallRun run;
  EXPECT_TRUE(store.list().empty());
  store.save(run.ctx, run.net, run.optimizer, at_step(4), {});
  store.save_best(run.ctx, run.net, {}, at_step(4));
  EXPECT_FALSE(fs::exists(path + "/checkpoints/.tmp-step-00000004"));
  EXPECT_FALSE(fs::exists(path + "/checkpoints/.probe.tmp-4711"));
  EXPECT_FALSE(fs::exists(path + "/.best.safetensors.tmp-4711"));
}

// With several ranks, each keeps a part of the optimizer's state, and the rank that saves writes all of it.
TEST(CheckpointStore, PredictsBytesOfFiles) {
  const std::string path = fresh_path("store_bytes");
  SmallRun run;
  for (const bool averages : {false, true}) {
    WeightAverage average(*run.ctx.stream, run.net, 0.9);
    std::vector<Tensor> values;
    for (const Parameter* parameter : run.net.parameters())
      values.push_back(Tensor::filled(*run.ctx.stream, parameter->shape, 1));
    average.restore(std::move(values));
    const std::string folder = CheckpointStore(path, 1).save(run.ctx, run.net, run.optimizer, at_step(averages ? 2 : 1),
                                                             {}, averages ? &average : nullptr);
    std::size_t model = 0, state = 0;
    for (const auto& [name, array] : read_safetensors(folder + "/model.safetensors").arrays)
      model += array.bytes.size();
    for (const auto& [name, array] : read_safetensors(folder + "/state.safetensors").arrays)
      if (!name.starts_with("optimizer.steps.")) state += array.bytes.size();  // one number each
    const SavedBytes planned = saved_bytes(run.net, run.optimizer, averages);
    EXPECT_EQ(planned.weights, model);
    EXPECT_EQ(planned.checkpoint, model + state) << averages;
  }
}

TEST(CheckpointStore, ChecksThatItCanWrite) {
  const std::string path = fresh_path("store_probe");
  CheckpointStore(path, 1).prove_writable({1000, 1000}, 1);
  EXPECT_TRUE(fs::is_empty(path + "/checkpoints"));
  expect_within("are free. Free space", error_of([&] { CheckpointStore(path, 1).prove_writable({SIZE_MAX, 1}, 1); }));

  const std::string file = fresh_path("store_probe_file");
  std::ofstream(file) << "in the way";
  expect_within("cannot create folder", error_of([&] { CheckpointStore(file, 1).prove_writable({1, 1}, 1); }));
}

// Three kept checkpoints, a fourth while it is written, and the best weights: the free space fits only three.
TEST(CheckpointStore, CountsPeakDiskSpace) {
  const std::string path = fresh_path("store_space");
  fs::create_directories(path);
  // Two fit and three do not, even if other programs write to the disk in the meantime.
  const std::size_t most = fs::space(path).available / 5 * 2;
  const auto space_complaint = [&](std::int64_t keep, std::int64_t saves) {
    return error_of([&] { CheckpointStore(path, keep).prove_writable({most, 1000}, saves); });
  };
  expect_within("4 checkpoints of ", space_complaint(3, 100));
  expect_within("3 checkpoints of ", space_complaint(3, 2));
  EXPECT_EQ(space_complaint(1, 100), "");
  EXPECT_EQ(space_complaint(3, 1), "");
}

TEST(CheckpointStore, CountsReplacedFilesAsFree) {
  const std::string path = fresh_path("store_resumed_space");
  fs::create_directories(path + "/checkpoints/step-00000100");
  const std::string file = path + "/checkpoints/step-00000100/model.safetensors";
  std::ofstream(file) << "";
  const std::size_t half = fs::space(path).available / 2;
  fs::resize_file(file, half);  // a sparse file: it occupies no disk space
  EXPECT_EQ(error_of([&] { CheckpointStore(path, 1).prove_writable({half, half / 2}, 9); }), "");
  fs::remove(file);
  expect_within("only", error_of([&] { CheckpointStore(path, 1).prove_writable({half, half / 2}, 9); }));
}

TEST(NewestCheckpoint, IsFoundFromAnyFolder) {
  const std::string path = fresh_path("newest_found");
  CheckpointStore store(path, 3);
  SmallRun run;
  const std::string first = store.save(run.ctx, run.net, run.optimizer, at_step(1), {});
  const std::string second = store.save(run.ctx, run.net, run.optimizer, at_step(2), {});
  EXPECT_EQ(newest_checkpoint(path), second);
  EXPECT_EQ(newest_checkpoint(path + "/"), second);
  EXPECT_EQ(newest_checkpoint(first), first);
  EXPECT_EQ(newest_checkpoint(first + "/"), first);
  EXPECT_EQ(newest_checkpoint(first + "/state.safetensors"), first);
}

TEST(NewestCheckpoint, SuggestsOlderIntactCheckpoint) {
  const std::string path = fresh_path("newest_damaged");
  CheckpointStore store(path, 3);
  SmallRun run;
  const std::string first = store.save(run.ctx, run.net, run.optimizer, at_step(100), {});
  const std::string second = store.save(run.ctx, run.net, run.optimizer, at_step(200), {});
  cut_short(second + "/model.safetensors");
  for (const std::string& given : {path, second}) {
    const std::string message = error_of([&] { newest_checkpoint(given); });
    expect_within(second + "/model.safetensors: damaged: header promises", message);
    expect_within("\n  " + first + " is intact; to resume from it: --resume " + first, message);
  }
  cut_short(first + "/state.safetensors");
  expect_within("no older checkpoint is intact", error_of([&] { newest_checkpoint(path); }));
}

TEST(NewestCheckpoint, ExplainsWhatResumeAccepts) {
  const std::string path = fresh_path("newest_wrong");
  expect_within("there is no folder", error_of([&] { newest_checkpoint(path); }));
  CheckpointStore store(path, 3);
  SmallRun run;
  store.save_best(run.ctx, run.net, {}, at_step(1));
  expect_within("has no checkpoint in it", error_of([&] { newest_checkpoint(path); }));
  EXPECT_EQ(error_of([&] { newest_checkpoint(path + "/best.safetensors"); }),
            "--resume takes a run folder or checkpoint folder; '" + path +
                "/best.safetensors' holds weights only. For fine-tuning use --weights.");
}

TEST(FindWeights, PrefersBestToNewest) {
  const std::string path = fresh_path("find_weights");
  expect_within("there is no weights file", error_of([&] { find_weights(path); }));
  CheckpointStore store(path, 3);
  store.prove_writable({1, 1}, 1);
  expect_within("holds no weights", error_of([&] { find_weights(path); }));
  SmallRun run;
  const std::string folder = store.save(run.ctx, run.net, run.optimizer, at_step(1), {});
  EXPECT_EQ(find_weights(path), folder + "/model.safetensors");
  EXPECT_EQ(find_weights(folder), folder + "/model.safetensors");
  store.save_best(run.ctx, run.net, {}, at_step(1));
  EXPECT_EQ(find_weights(path), path + "/best.safetensors");
  EXPECT_EQ(find_weights(path + "/best.safetensors"), path + "/best.safetensors");
}

}  // namespace twiddle
