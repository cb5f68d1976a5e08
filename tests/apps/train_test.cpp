#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/report/metrics.h"
#include "data/formats/dataset.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Training on a few batches of the shipped digits, in this test's folder.
class Train : public testing::Test {
 protected:
  Train() : out_(fresh_folder("train")) {}
  ~Train() override { fs::remove_all(out_); }

  std::vector<std::string> digits(std::vector<std::string> more) const {
    std::vector<std::string> all = {"train", "models/digits.yaml", "--out", out_.string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  fs::path run(int number) const { return out_ / ("digits-00" + std::to_string(number)); }
  std::size_t lines(const fs::path& file) const {
    const std::string text = read_text(file);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  fs::path out_;
};

TEST_F(Train, ReportShowsBestEpochLikeEval) {
  ASSERT_EQ(run_program(digits({"--epochs", "4", "--lr", "0.2"})).code, 0);  // the best epoch is not always the last
  const Finished eval = run_program({"eval", run(1).string(), "-q"});
  const std::size_t at = eval.out.find("top-1  ");
  ASSERT_NE(at, std::string::npos) << eval.err;
  const std::string top1 = eval.out.substr(at + 7, eval.out.find('\n', at) - at - 7);
  const std::string report = read_text(run(1) / "report.html");
  EXPECT_NE(report.find("<title>" + run(1).filename().string() + "</title>"), std::string::npos);
  EXPECT_NE(report.find("<span>top-1 " + top1 + "</span>"), std::string::npos);
  EXPECT_NE(report.find(", the best</span>"), std::string::npos);
  EXPECT_NE(report.find(" train models/digits.yaml"), std::string::npos);  // the command
}

TEST_F(Train, EvalAndPredictReadItsFolder) {
  const Finished train = run_program(digits({"--epochs", "2"}));
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_NE(train.out.find("best val-top1"), std::string::npos) << train.out;
  for (const char* name : {"config.yaml", "environment.json", "metrics.jsonl", "metrics.csv", "train.log",
                           "best.safetensors", "best.json", "report.html", "checkpoints"})
    EXPECT_TRUE(fs::exists(run(1) / name)) << name;
  EXPECT_EQ(lines(run(1) / "metrics.csv"), 3u);
  EXPECT_NE(read_text(run(1) / "report.html").find("data:image/png;base64,"), std::string::npos);

  const Finished eval = run_program({"eval", run(1).string(), "--json", "-", "-q"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const auto scores = nlohmann::json::parse(eval.out);
  EXPECT_GT(scores.at("top1").get<double>(), 0.7);
  EXPECT_EQ(scores.at("classes").size(), 10u);
  EXPECT_EQ(scores.at("images"), 297);
  const auto best = nlohmann::json::parse(read_text(run(1) / "best.json"));
  for (const char* key : {"images", "top1", "confusion", "outside", "undefined"})
    EXPECT_EQ(best.at(key), scores.at(key)) << key;

  const Finished predict = run_program({"predict", run(1).string(), "no/such.png"});
  EXPECT_EQ(predict.code, 3);
  std::ofstream(out_ / "broken.png") << "not a picture";
  const Finished broken = run_program({"predict", run(1).string(), (out_ / "broken.png").string()});
  EXPECT_EQ(broken.code, 3);
  EXPECT_NE(broken.err.find("broken.png"), std::string::npos) << broken.err;
}

TEST_F(Train, PrintsPlainLinesToPipe) {
  const Finished plain = run_program(digits({"--epochs", "2", "--limit-batches", "3"}));
  EXPECT_EQ(plain.err.find('\r'), std::string::npos);
  EXPECT_EQ(plain.err.find('\033'), std::string::npos);
  EXPECT_NE(plain.err.find("\n    2 "), std::string::npos) << plain.err;
  const Finished quiet = run_program(digits({"--epochs", "1", "--limit-batches", "3", "-q"}));
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.err, "");
}

TEST_F(Train, ReportsMeasuredEnginesAndReasons) {
  const std::vector<std::string> measured =
      digits({"--device", "cpu", "--engine", "measured", "--set",
              "convolution.cache=" + (out_ / "choices.txt").string(), "--epochs", "1", "--limit-batches", "1"});
  const Finished first = run_program(measured);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::size_t table = first.err.find("chosen because");
  ASSERT_NE(table, std::string::npos) << first.err;
  EXPECT_NE(first.err.find("measured ", table), std::string::npos) << first.err;
  const Finished second = run_program(measured);                          // cached choices are not reported
  const bool all_kept = first.err.find("not kept") == std::string::npos;  // else the machine was busy
  EXPECT_TRUE(!all_kept || second.err.find("chosen because") == std::string::npos) << second.err;
  EXPECT_NE(read_text(run(2) / "train.log").find("cached"), std::string::npos);
}

TEST_F(Train, ResumeEqualsUninterruptedRun) {
  // On a GPU, engines may otherwise select another algorithm in each process.
  const std::vector<std::string> same = {"--set", "train.schedule=constant", "--set", "deterministic=true", "--epochs"};
  for (const char* epochs : {"2", "1"}) {
    std::vector<std::string> arguments = same;
    arguments.push_back(epochs);
    ASSERT_EQ(run_program(digits(arguments)).code, 0);
  }
  const Finished resumed = run_program({"train", "--resume", run(2).string(), "--epochs", "2"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("changed since the run began: train.epochs: 1 -> 2"), std::string::npos) << resumed.err;
  const std::string weights = "checkpoints/step-00000094/model.safetensors";
  EXPECT_TRUE(fs::exists(run(1) / weights));
  EXPECT_TRUE(read_text(run(1) / weights) == read_text(run(2) / weights));
  EXPECT_EQ(lines(run(1) / "metrics.jsonl"), lines(run(2) / "metrics.jsonl"));
}

TEST_F(Train, ResumeFromOlderCheckpointDropsMetrics) {
  ASSERT_EQ(run_program(digits({"--epochs", "3", "--limit-batches", "2"})).code, 0);
  const auto checkpoint = run(1) / "checkpoints" / "step-00000002";
  ASSERT_EQ(run_program({"train", "--resume", checkpoint.string(), "--limit-batches", "2", "--epochs", "2"}).code, 0);
  EXPECT_EQ(lines(run(1) / "metrics.csv"), 3u);
}

TEST_F(Train, CtrlCSavesAndSuggestsResume) {
  Program program(digits({"--epochs", "100000"}));
  const fs::path metrics = run(1) / "metrics.jsonl";
  ASSERT_TRUE(program.comes_to([&] { return lines(metrics) >= 3; })) << program.err();
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_NE(program.err().find("stopping (Ctrl-C again: quit now)"), std::string::npos);
  EXPECT_NE(program.err().find("Resume: " + program_path() + " train --resume " + run(1).string()), std::string::npos)
      << program.err();
  EXPECT_FALSE(fs::is_empty(run(1) / "checkpoints"));
  EXPECT_EQ(run_program({"eval", run(1).string()}).code, 0);
}

TEST_F(Train, QuietReportsSaveOnCtrlC) {
  Program program(digits({"--epochs", "100000", "-q"}));
  const fs::path metrics = run(1) / "metrics.jsonl";
  ASSERT_TRUE(program.comes_to([&] { return lines(metrics) >= 3; })) << program.err();
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_EQ(count(program.err(), "saved step "), 1u) << program.err();
  EXPECT_NE(program.err().find("--resume " + run(1).string()), std::string::npos) << program.err();
}

TEST_F(Train, WarnsOfTooSlowAverage) {
  const Finished done =
      run_program(digits({"--epochs", "1", "--limit-batches", "3", "--set", "train.ema={decay: 0.9999}"}));
  EXPECT_EQ(done.code, 0);
  EXPECT_NE(done.err.find("warning: 'ema': with decay 0.9999 "), std::string::npos) << done.err;
  EXPECT_NE(read_text(run(1) / "train.log").find("warning: 'ema'"), std::string::npos);
}

TEST_F(Train, ProfileCountsEveryLayerAndStep) {
  const Finished train = run_program(digits({"--epochs", "2", "--limit-batches", "3", "--profile"}));
  ASSERT_EQ(train.code, 0) << train.err;
  const auto visits = [&](const std::string& layer, const std::string& pass) {
    std::istringstream lines(train.err);
    std::int64_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string first, second;
      if (words >> first >> second && first == layer && second == pass) words >> count;
    }
    return count;
  };
  for (const char* layer : {"conv1", "conv3", "pool1", "fc1"}) EXPECT_EQ(visits(layer, "forward"), 6) << train.err;
  EXPECT_EQ(visits("conv2", "backward_weight"), 6);
  EXPECT_EQ(visits("fc1", "backward_weight"), 6);
  EXPECT_EQ(visits("pool1", "backward"), 6);
  EXPECT_EQ(visits("conv1", "backward_input"), 0);  // not needed
  EXPECT_EQ(visits("conv1", "backward"), 0);        // its parts are listed
  EXPECT_NE(read_text(run(1) / "train.log").find("median ms"), std::string::npos);
}

TEST_F(Train, CountsAndNamesSkippedImages) {
  for (const char* name : {"pets/cats/1.png", "pets/cats/2.png", "pets/dogs/1.png", "pets/dogs/2.png"}) {
    fs::create_directories((out_ / name).parent_path());
    const std::vector<std::uint8_t> png = encode_png({1, 4, 4, std::vector<std::uint8_t>(16, 99)});
    std::ofstream(out_ / name).write(reinterpret_cast<const char*>(png.data()), std::streamsize(png.size()));
  }
  std::ofstream(out_ / "pets/dogs/2.png") << "no picture";
  const std::string config = (out_ / "pets.yaml").string();
  std::ofstream(config) << "version: 1\nmodel: {input: [1, 4, 4], layers: [linear: {outputs: 2}]}\n"
                           "data: {train: {format: image_folder, path: pets, channels: 1}, on_error: skip}\n"
                           "train: {epochs: 2, batch_size: 2}\n";
  const Finished check = run_program({"check", config, "--images"});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_NE(check.out.find("1 of 4 images cannot be used; they will be skipped"), std::string::npos) << check.out;
  EXPECT_EQ(run_program({"check", config, "--images", "--set", "data.on_error=fail"}).code, 3);

  const Finished train = run_program({"train", config, "--out", (out_ / "runs").string(), "--json", "-"});
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_NE(train.err.find("1 image could not be read and was left out:\n  '" + (out_ / "pets/dogs/2.png").string()),
            std::string::npos)
      << train.err;
  EXPECT_EQ(nlohmann::json::parse(train.out).at("skipped_images"), 1);
  const fs::path folder = out_ / "runs" / "pets-001";
  const Finished eval =
      run_program({"eval", folder.string(), "--set", "data.val={format: image_folder, path: pets, channels: 1}"});
  EXPECT_NE(eval.err.find("1 image could not be read and was left out\n"), std::string::npos) << eval.err;
  const History history = read_history(folder);
  ASSERT_EQ(history.epochs.size(), 2u);
  EXPECT_EQ(history.epochs.back().skipped, 1);
  EXPECT_NE(read_text(folder / "metrics.csv").find(",skipped,time\n"), std::string::npos);
  EXPECT_NE(read_text(folder / "report.html").find("1 image could not be read and was left out; the first: "),
            std::string::npos);
}

TEST_F(Train, DoesNothingIfEpochsAreDone) {
  ASSERT_EQ(run_program(digits({"--epochs", "2", "--limit-batches", "2"})).code, 0);
  const std::string before = read_text(run(1) / "config.yaml");
  const Finished again = run_program({"train", "--resume", run(1).string(), "--epochs", "1"});
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.err.find("already trained: 2 epochs, requested: 1 epoch: nothing to do"), std::string::npos)
      << again.err;
  EXPECT_EQ(read_text(run(1) / "config.yaml"), before);
}

TEST_F(Train, DivergenceExitsWithFive) {
  const Finished train = run_program(digits({"--lr", "1000"}));
  EXPECT_EQ(train.code, 5);
  EXPECT_NE(train.err.find(" became "), std::string::npos) << train.err;
  EXPECT_NE(train.err.find("first bad value: output of '"), std::string::npos) << train.err;
  EXPECT_NE(read_text(run(1) / "train.log").find(" became "), std::string::npos);
}

TEST_F(Train, FailedStartLeavesNoFolder) {
  EXPECT_EQ(run_program(digits({"--set", "data.train.images=no/such.gz"})).code, 3);
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(Train, FailedThreadStartLeavesNoFolder) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "it limits the address space";
#endif
  for (const char* flag : {"--workers 256", "--threads 4000"}) {
    const Finished train = run_shell(std::string("ulimit -v 1500000; exec \"$TWIDDLE\" train models/digits.yaml ") +
                                     flag + " --out " + out_.string());
    EXPECT_EQ(train.code, 4) << train.err;
    EXPECT_NE(train.err.find("error: cannot start "), std::string::npos) << train.err;
    EXPECT_TRUE(fs::is_empty(out_));
  }
}

TEST_F(Train, FailedFirstStepLeavesNoFolder) {
  const std::string config = (out_ / "open_end.yaml").string(), runs = (out_ / "runs").string();
  std::ofstream(config) << "version: 1\nmodel: {input: [1, 8, 8], layers: [linear: {outputs: 10}]}\n"
                           "data: {train: {format: image_list, file: pictures.txt, channels: 1}}\n";
  std::ofstream(out_ / "pictures.txt") << "broken.png 0\n";
  std::ofstream(out_ / "broken.png") << "no picture";
  const Finished train = run_program({"train", config, "--out", runs});
  EXPECT_EQ(train.code, 3) << train.err;
  EXPECT_FALSE(fs::exists(runs));
}

TEST_F(Train, RefusesInputAsOutput) {
  const std::string config = (out_ / "net.yaml").string();
  fs::copy_file("models/digits.yaml", config);
  const std::string before = read_text(config);
  for (const char* verb : {"train", "summary", "check", "time", "tune"}) {
    const Finished run = run_program({verb, config, "--json", config});
    EXPECT_EQ(run.code, 2) << verb;
    EXPECT_NE(run.err.find("--json: '" + config + "' is an input"), std::string::npos) << run.err;
  }
  EXPECT_EQ(read_text(config), before);
}

TEST_F(Train, SuggestsOnlyWorkingCommands) {
  const Finished with = run_program(digits({"--epochs", "1", "--limit-batches", "1"}));
  EXPECT_NE(with.err.find(program_path() + " eval " + run(1).string()), std::string::npos) << with.err;
  const std::string config = (out_ / "blind.yaml").string();
  std::ofstream(config) << "version: 1\nmodel: {input: [1, 4, 4], layers: [linear: {outputs: 2}]}\n"
                           "data: {train: {format: synthetic, images: 8}}\ntrain: {epochs: 1}\n";
  const Finished without = run_program({"train", config, "--out", out_.string()});
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(without.err.find(" eval "), std::string::npos) << without.err;
  EXPECT_NE(without.err.find(" predict "), std::string::npos) << without.err;
}

TEST_F(Train, JsonHoldsLosses) {
  const Finished train = run_program(digits({"--epochs", "2", "--limit-batches", "2", "--json", "-"}));
  const auto results = nlohmann::json::parse(train.out);
  ASSERT_EQ(results.at("history").size(), 2u);
  EXPECT_GT(results.at("history").at(1).at("train_loss").get<double>(), 0);
  EXPECT_GT(results.at("history").at(1).at("val_loss").get<double>(), 0);
}

TEST_F(Train, DamagedFilesExitWithThree) {
  std::ofstream(out_ / "cut.idx") << std::string("\0\0\x08\x03\0\0\0\x09", 8);
  EXPECT_EQ(run_program(digits({"--set", "data.train.images=" + (out_ / "cut.idx").string()})).code, 3);
  ASSERT_EQ(run_program(digits({"--epochs", "1", "--limit-batches", "2"})).code, 0);
  const auto checkpoint = run(1) / "checkpoints" / "step-00000002" / "model.safetensors";
  fs::resize_file(checkpoint, fs::file_size(checkpoint) / 2);
  const Finished resumed = run_program({"train", "--resume", run(1).string(), "--epochs", "2"});
  EXPECT_EQ(resumed.code, 3) << resumed.err;
  EXPECT_NE(resumed.err.find("model.safetensors"), std::string::npos) << resumed.err;
}

TEST_F(Train, PrintConfigRoundTrips) {
  const Finished printed = run_program(digits({"--epochs", "7", "--print-config"}));
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_TRUE(fs::is_empty(out_));
  std::ofstream(out_ / "again.yaml") << printed.out;
  const Finished again = run_program({"train", (out_ / "again.yaml").string(), "--print-config"});
  EXPECT_EQ(again.out, printed.out) << again.err;
  for (const char* line : {"seed: 1", "stride: 1", "momentum: 0.9", "workspace_limit: 4GiB", "workers: 2", "keep: 3"})
    EXPECT_NE(printed.out.find(line), std::string::npos) << line << " is not in\n" << printed.out;
}

TEST_F(Train, EvaluatesWithoutTrainingData) {
  ASSERT_EQ(run_program(digits({"--epochs", "1", "--limit-batches", "1"})).code, 0);
  fs::copy_file(run(1) / "best.safetensors", out_ / "weights.safetensors");
  unsetenv("TWIDDLE_TEST_UNSET");
  const Finished eval =
      run_program({"eval", (out_ / "weights.safetensors").string(), "models/digits.yaml", "-q", "--set",
                   "data.train={format: idx, images: \"${TWIDDLE_TEST_UNSET}\", labels: x}"});
  EXPECT_EQ(eval.code, 0) << eval.err;
}

TEST_F(Train, ReportsLoadedAndSkippedWeights) {
  ASSERT_EQ(run_program(digits({"--epochs", "1", "--limit-batches", "1"})).code, 0);
  const std::string weights = (run(1) / "best.safetensors").string();
  const Finished tuned = run_program(digits({"--epochs", "1", "--limit-batches", "1", "--weights", weights, "--set",
                                             "model.layers.conv2.filters=24", "--set", "train.freeze=conv1"}));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("weights  " + weights + ": 2 of 4 layers loaded"), std::string::npos) << tuned.err;
  EXPECT_NE(tuned.err.find("'conv2.bias' is 32 in the file, 24 in the model"), std::string::npos) << tuned.err;
  EXPECT_NE(tuned.err.find("of them frozen"), std::string::npos) << tuned.err;
  const Finished whole = run_program(digits({"--epochs", "1", "--limit-batches", "1", "--weights", weights}));
  EXPECT_NE(whole.err.find(": 4 of 4 layers loaded"), std::string::npos) << whole.err;
  EXPECT_EQ(whole.err.find("initialized"), std::string::npos) << whole.err;
}

TEST_F(Train, EvaluatesRunFromAnyFolder) {
  const Finished train = run_program(digits({"--epochs", "1", "--limit-batches", "1"}));
  ASSERT_EQ(train.code, 0) << train.err;
  const fs::path here = fs::current_path();
  fs::current_path(out_);
  const Finished eval = run_program({"eval", "digits-001", "-q"});
  const Finished alone =
      run_program({"eval", "digits-001", "-q", "--set", "data.train={format: idx, images: gone.gz, labels: gone.gz}"});
  const Finished resumed = run_program({"train", "--resume", "digits-001", "--epochs", "2", "--limit-batches", "1"});
  fs::current_path(here);
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(alone.out, eval.out) << alone.err;
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("changed since the run began: train.epochs: 1 -> 2"), std::string::npos) << resumed.err;
  EXPECT_EQ(resumed.err.find("changed since"), resumed.err.rfind("changed since")) << resumed.err;
}

}  // namespace
}  // namespace twiddle
