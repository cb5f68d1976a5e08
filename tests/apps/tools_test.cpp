#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

TEST(Summary, CountsParametersOfDigitsNetwork) {
  const Finished run = run_program({"summary", "models/digits.yaml", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto facts = nlohmann::json::parse(run.out);
  EXPECT_EQ(facts.at("parameters"), (32 * 9 + 32) + (32 * 32 * 9 + 32) + (64 * 32 * 9 + 64) + (1024 * 10 + 10));
  EXPECT_EQ(facts.at("decayed_parameters"), 32 * 9 + 32 * 32 * 9 + 64 * 32 * 9 + 1024 * 10);
  EXPECT_EQ(facts.at("layers").at(0).at("flops_per_image"), 2.0 * 32 * 8 * 8 * 9);
  EXPECT_EQ(facts.at("memory_bytes").at("weights"), facts.at("parameters").get<int>() * 4);
  std::size_t sum = 0;
  for (const char* part :
       {"weights", "gradients", "optimizer", "activations", "workspace", "spectra", "data", "evaluation", "program"})
    sum += facts.at("memory_bytes").at(part).get<std::size_t>();
  EXPECT_EQ(facts.at("memory_bytes").at("total"), sum);
}

// The last layer's output is f32.
TEST(Summary, CountsActivationsOf16Bits) {
  const auto layers = [](const char* precision) {
    const Finished run = run_program({"summary", "models/digits.yaml", "--precision", precision, "--json", "-"});
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out).at("layers");
  };
  const nlohmann::json bf16 = layers("bf16"), fp32 = layers("fp32");
  for (const std::size_t layer : {0, 2})
    EXPECT_EQ(2 * bf16[layer].at("activation_bytes_per_image").get<int>(),
              fp32[layer].at("activation_bytes_per_image"));
  EXPECT_EQ(bf16.back().at("activation_bytes_per_image"), fp32.back().at("activation_bytes_per_image"));
}

TEST(Summary, PlansWithTunedChoices) {
  const auto folder = fresh_folder("summary");
  const std::string cache = "convolution.cache=" + (folder / "choices.txt").string();
  const auto run = [&](const std::string& verb, const std::string& json) {
    std::vector<std::string> arguments{verb,       "models/digits.yaml", "--device", "cpu",   "--batch", "2",
                                       "--engine", "measured",           "-q",       "--set", cache};
    if (!json.empty()) arguments.insert(arguments.end(), {"--json", json});
    return run_program(arguments);
  };
  EXPECT_NE(run("summary", "").out.find("planned by `rule`"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(run("summary", "-").out).at("planned_by_rule").size(), 4u);
  ASSERT_EQ(run("tune", "").code, 0);
  const Finished after = run("summary", "");
  EXPECT_EQ(after.code, 0) << after.err;
  EXPECT_EQ(after.out.find("planned by `rule`"), std::string::npos) << after.out;
  std::filesystem::remove_all(folder);
}

TEST(Summary, FailsIfGpuIsMissing) {
  for (const std::string verb : {"summary", "check"})
    for (const std::string engine : {"rule", "cudnn"}) {
      const Finished run = run_program({verb, "models/digits.yaml", "--device", "cuda:99", "--engine", engine});
      EXPECT_EQ(run.code, 4) << verb << ' ' << engine;
      EXPECT_NE(run.err.find("requested, but "), std::string::npos) << run.err;
      EXPECT_EQ(run.out, "");
    }
}

TEST(Check, WarnsIfWarmUpLastsRun) {
  const auto remarked = [](const std::string& warm_up) {
    const Finished run = run_program({"check", "models/digits.yaml", "--epochs", "3", "--set",
                                      "train.schedule={cosine: {warmup: " + warm_up + "}}"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("warm-up " + warm_up), std::string::npos) << run.out;
    return run.out.find("the full rate is never used") != std::string::npos;
  };
  EXPECT_FALSE(remarked("2"));
  EXPECT_TRUE(remarked("3"));
  EXPECT_TRUE(remarked("4"));
}

// 1,200 digits in batches of 32.
TEST(Check, WarnsOfHarmfulSettings) {
  const auto warnings = [](const std::vector<std::string>& settings) {
    std::vector<std::string> arguments{"check", "models/digits.yaml"};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.err;
  };
  EXPECT_EQ(warnings({}), "");
  const std::string slow = warnings({"train.ema={decay: 0.9999}"});
  EXPECT_NE(slow.find("warning: models/digits.yaml: 'ema': with decay 0.9999 "), std::string::npos) << slow;
  EXPECT_NE(slow.find("set decay 0.9"), std::string::npos) << slow;
  EXPECT_EQ(warnings({"train.ema={decay: 0.98}"}), "");
  EXPECT_EQ(warnings({"train.ema={decay: 0.9999, warmup: true}"}), "");
  const std::string bytes = warnings({"data.normalize={mean: 127.5, std: 127.5}"});
  EXPECT_NE(bytes.find("set mean 0.5 and std 0.5"), std::string::npos) << bytes;
  EXPECT_EQ(warnings({"data.normalize={mean: 0.5, std: 1}"}), "");
  const std::string weights = "train.loss={cross_entropy: {class_weights: [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]}}";
  EXPECT_EQ(warnings({weights}), "");
  const std::string means = warnings({weights, "train.accumulate=2"});
  EXPECT_NE(means.find("'class_weights' with 'accumulate'"), std::string::npos) << means;
}

// With nine images, the last one would be a separate batch, on which batch norm cannot be trained.
TEST(Check, CountsUpdatesAsTrainDoes) {
  const auto folder = fresh_folder("updates");
  const std::string file = (folder / "net.yaml").string();
  std::ofstream(file) << "version: 1\nmodel: {input: [1, 4, 4], layers: [linear: {outputs: 3}, batch_norm]}\n"
                         "data: {train: {format: synthetic, images: 9, classes: 3}}\n"
                         "train: {epochs: 2, batch_size: 4, ema: {decay: 0.9999}}\n";
  const Finished checked = run_program({"check", file});
  EXPECT_NE(checked.err.find("after its 4 updates"), std::string::npos) << checked.err;
  const Finished trained = run_program({"train", file, "--out", folder.string()});
  EXPECT_NE(trained.err.find("after its 4 updates"), std::string::npos) << trained.err;
}

TEST(Check, ReportsFirstFailureOfFiles) {
  const auto folder = fresh_folder("check");
  std::ofstream(folder / "bad.yaml") << "version: 1\nmodle: {}\n";
  const Finished run = run_program({"check", (folder / "bad.yaml").string(), "models/digits.yaml"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("unknown key 'modle'"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("bad " + (folder / "bad.yaml").string()), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("ok  models/digits.yaml"), std::string::npos) << run.out;
  std::filesystem::remove_all(folder);
}

TEST(Check, WritesJsonForInvalidFile) {
  const auto folder = fresh_folder("check_json");
  std::ofstream(folder / "bad.yaml") << "version: 1\nmodle: {}\n";
  const Finished run = run_program({"check", (folder / "bad.yaml").string(), "--json", "-"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("unknown key 'modle'"), std::string::npos) << run.err;
  const std::string error = nlohmann::json::parse(run.out).at(0).at("error");
  EXPECT_NE(error.find("unknown key 'modle'"), std::string::npos) << error;
  std::filesystem::remove_all(folder);
}

TEST(Check, ComparesPlanWithFreeMemory) {
  for (const std::string verb : {"check", "time", "train"}) {
    const auto folder = fresh_folder("memory");
    std::vector<std::string> arguments = {
        verb, "models/alexnet.yaml", "--batch-size", "1000000", "--device", "cpu", "--set", "convolution.engine=gemm"};
    if (verb == "train") arguments.insert(arguments.end(), {"--out", folder.string()});
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.code, 4) << verb << run.err;
    EXPECT_NE(run.err.find("too little memory: training needs "), std::string::npos) << verb << run.err;
    EXPECT_NE(run.err.find(": --batch-size "), std::string::npos) << verb << run.err;
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << verb;
    std::filesystem::remove_all(folder);
  }
}

TEST(Check, ReadsEveryImageIfSet) {
  const Finished run = run_program({"check", "models/digits.yaml", "--images"});
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("pixels    mean [0."), std::string::npos) << run.out;
  const Finished json = run_program({"check", "models/digits.yaml", "--images", "--json", "-"});
  const auto facts = nlohmann::json::parse(json.out).at(0);
  EXPECT_EQ(facts.at("mean").size(), 1u);
  EXPECT_GT(facts.at("std").at(0).get<double>(), 0);
}

TEST(Devices, ListsCpu) {
  const Finished run = run_program({"devices", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at(0).at("name"), "cpu");
}

TEST(Time, ReportsIterationAndEveryLayer) {
  const Finished run =
      run_program({"time", "models/digits.yaml", "--device", "cpu", "--batch", "4", "--steps", "3", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto times = nlohmann::json::parse(run.out);
  EXPECT_EQ(times.at("timed"), 3);
  EXPECT_EQ(times.at("batch_size"), 4);
  EXPECT_TRUE(times.at("commit").is_string());
  EXPECT_GT(times.at("iteration").at("median_ms").get<double>(), 0);
  bool first_input_gradient = false;
  int convolution_rows = 0;
  for (const auto& row : times.at("layers")) {
    first_input_gradient |= row.at("layer") == "conv1" && row.at("pass") == "backward_input";
    if (!row.contains("engine")) continue;
    ++convolution_rows;
    EXPECT_LT(row.at("error").get<double>(), 2e-6) << row;
    EXPECT_EQ(row.at("reason"), "rule");
  }
  EXPECT_FALSE(first_input_gradient);      // not needed
  EXPECT_EQ(convolution_rows, 4 * 3 - 1);  // fc1 included
}

// Each pass uses two spectra, and the first layer has two passes. The spectra of a layer's input, weights and gradient
// are computed once.
TEST(Time, CountsOnlySpectraOfOneStep) {
  const Finished run = run_program({"time", "models/digits.yaml", "--device", "cpu", "--engine", "fft", "--batch", "4",
                                    "--steps", "3", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto spectra = nlohmann::json::parse(run.out).at("spectra");
  EXPECT_EQ(spectra.at("computed_per_step"), 3 * 3);
  EXPECT_EQ(spectra.at("reused_per_step"), 3 * 3 - 2);
  EXPECT_GT(spectra.at("peak_bytes"), 0);
}

TEST(Time, UnsupportedEngineIsConfigError) {
  const Finished run = run_program({"time", "models/digits.yaml", "--engine", "gem"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("gemm"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace twiddle
