#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

using Json = nlohmann::json;

TEST(Tune, CachesChoiceOfEveryPass) {
  const auto folder = fresh_folder("tune");
  const std::string cache = "convolution.cache=" + (folder / "choices.txt").string();
  const std::vector<std::string> arguments{
      "tune", "models/digits.yaml", "--device", "cpu", "--batch", "2", "--set", cache, "-q", "--json", "-"};
  const Finished first = run_program(arguments);
  ASSERT_EQ(first.code, 0) << first.err;
  const Json tuned = Json::parse(first.out);
  ASSERT_EQ(tuned.at("layers").size(), 4u * 3 - 1);  // no gradient of the images
  for (const Json& row : tuned.at("layers")) {
    EXPECT_LT(row.at("error").get<double>(), 2e-6) << row;
    EXPECT_NE(row.at("reason"), "cached") << row;
  }
  const std::string kept = read_text(folder / "choices.txt");
  EXPECT_NE(kept.find("batch 2\t"), std::string::npos) << kept;
  EXPECT_NE(kept.find("1x1x8x8 * 32x1x3x3 pad 1"), std::string::npos) << kept;

  const Finished second = run_program(arguments);
  ASSERT_EQ(second.code, 0) << second.err;
  const Json again = Json::parse(second.out).at("layers");
  for (std::size_t i = 0; i < again.size(); ++i) {
    const auto reason = tuned.at("layers").at(i).at("reason").get<std::string>();
    const bool doubtful = reason.find("not kept") != std::string::npos;  // the machine was busy
    EXPECT_TRUE(doubtful || again[i].at("reason") == "cached") << again[i];
  }
  std::filesystem::remove_all(folder);
}

TEST(Tune, ChoosesAmongPlansOfNamedEngine) {
  const auto folder = fresh_folder("tune_engine");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"tune",
                                       "models/digits.yaml",
                                       "--device",
                                       "cpu",
                                       "--batch",
                                       "2",
                                       "-q",
                                       "--set",
                                       "convolution.cache=" + (folder / "choices.txt").string(),
                                       "--set",
                                       "model.layers=[{conv2d: {filters: 4, kernel: 5}}, {linear: {outputs: "
                                       "10}}]",
                                       "--json",
                                       "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  const std::string set = "convolution.engine=";
  for (const std::vector<std::string>& named : {std::vector<std::string>{"--engine", "fft"}, {"--set", set + "gemm"}}) {
    const Finished tuned = run(named);
    ASSERT_EQ(tuned.code, 0) << tuned.err;
    const Json json = Json::parse(tuned.out);
    EXPECT_EQ(json.at("engine"), named[0] == "--engine" ? "measured:fft" : "measured:gemm");
    for (const Json& row : json.at("layers")) {
      if (row.at("layer") == "fc1") continue;  // uses `rule`
      EXPECT_EQ("measured:" + row.at("engine").get<std::string>(), json.at("engine").get<std::string>()) << row;
      EXPECT_TRUE(row.at("reason").get<std::string>().starts_with("measured")) << row;
    }
  }
  const Json by_fft = Json::parse(run({"--engine", "measured:fft"}).out).at("layers").at(0);
  const std::string plan = "fft:" + by_fft.at("plan").get<std::string>();
  const Json named = Json::parse(run({"--engine", plan}).out);
  EXPECT_EQ(named.at("layers").at(0).at("reason"), "named");
  EXPECT_EQ(named.at("kept"), false);
  const Finished table = run({"--engine", plan, "--json", (folder / "tuned.json").string()});
  EXPECT_NE(table.out.find("not kept: `engine: " + plan + "` names the plan"), std::string::npos) << table.out;
  EXPECT_NE(run({"--set", "deterministic=true"}).err.find("excludes engines that are measured"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(Engine, UnknownNameFailsInEveryVerb) {
  for (const char* verb : {"train", "time", "tune", "summary", "check"})
    for (const std::vector<std::string>& named :
         {std::vector<std::string>{"--engine", "cuddn"}, {"--set", "convolution.engine=measured:cuddn"}}) {
      std::vector<std::string> arguments{verb, "models/digits.yaml", "--device", "cpu"};
      arguments.insert(arguments.end(), named.begin(), named.end());
      const Finished run = run_program(arguments);
      EXPECT_EQ(run.code, 2) << verb;
      EXPECT_NE(run.err.find("unknown convolution engine 'cuddn'"), std::string::npos) << run.err;
    }
}

TEST(Tune, ReportsCacheThatCannotBeWritten) {
  const auto run = [](const std::string& cache, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"tune",
                                       "models/digits.yaml",
                                       "--device",
                                       "cpu",
                                       "--batch",
                                       "1",
                                       "-q",
                                       "--set",
                                       "model.layers=[{linear: {outputs: 10}}]",
                                       "--set",
                                       "convolution.cache=" + cache};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  EXPECT_NE(run("off").out.find("not kept: convolution.cache is off"), std::string::npos);
  const std::vector<std::string> one_layer{"--set",
                                           "model.layers=[{conv2d: {filters: 2, kernel: 3}}, {linear: {outputs: 10}}]"};
  const Finished lost = run("/proc/none/choices.txt", one_layer);
  EXPECT_EQ(lost.code, 0) << lost.err;
  EXPECT_NE(lost.out.find("not kept: cannot write '/proc/none/choices.txt': "), std::string::npos) << lost.out;
  const Finished mistake = run("models/digits.yaml", one_layer);
  EXPECT_EQ(mistake.code, 0) << mistake.err;
  EXPECT_NE(mistake.out.find("not kept: 'models/digits.yaml' is not a choice cache"), std::string::npos) << mistake.out;
  EXPECT_TRUE(std::filesystem::exists("models/digits.yaml"));
}

}  // namespace
}  // namespace twiddle
