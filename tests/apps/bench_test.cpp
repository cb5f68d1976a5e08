#include "apps/bench.h"

#include <gtest/gtest.h>

#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

using nlohmann::json;

std::vector<std::string> small(std::vector<std::string> arguments) {
  for (const char* more : {"--device", "cpu", "--batch-size", "1", "--milliseconds", "0"}) arguments.emplace_back(more);
  return arguments;
}

TEST(Bench, WritesTableRowsAsCsv) {
  const nlohmann::ordered_json rows = {{{"a", 1}, {"b", "x, \"y\""}}, {{"a", 2}, {"in", {{"c", 0.5}, {"d", "z"}}}}};
  EXPECT_EQ(to_csv(rows), "a,b,in.c,in.d\n1,\"x, \"\"y\"\"\",,\n2,,0.5,z\n");
}

TEST(Bench, MeasuresLayersBesideThePaper) {
  const auto folder = fresh_folder("bench");
  const std::string csv = (folder / "table.csv").string();
  const Finished run =
      run_program(small({"bench", "table4", "--layers", "L5", "--engines", "gemm,fft", "--csv", csv, "--json", "-"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const json table = json::parse(run.out);
  EXPECT_EQ(table.at("bench"), "table4");
  ASSERT_EQ(table.at("rows").size(), 6u);  // two engines, three passes
  for (const json& row : table.at("rows")) {
    EXPECT_EQ(row.at("layer"), "L5");
    EXPECT_EQ(row.at("multiply_adds"), 1.0 * 384 * 384 * 9 * 11 * 11);
    EXPECT_GT(row.at("ms").get<double>(), 0);
    EXPECT_LT(row.at("error").get<double>(), 2e-6);
    EXPECT_EQ(row.contains("in_step_ms"), row.at("engine") == "fft") << row;
    EXPECT_EQ(row.at("paper_ms").size(), 2u);
  }
  EXPECT_EQ(table.at("rows")[0].at("paper_ms").at("K40m cuFFT"), 21.35);
  const std::string text = read_text(csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
  std::filesystem::remove_all(folder);
}

TEST(Bench, TellsTheStagesOfAPass) {
  const Finished run = run_program(small({"bench", "table5", "--layers", "L4", "--passes", "forward", "--json", "-"}));
  ASSERT_EQ(run.code, 0) << run.err;
  const json rows = json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), 1u);
  const json& times = rows[0].at("ms");
  EXPECT_GT(times.at("product").get<double>(), 0);
  EXPECT_GT(times.at("fft_a").get<double>(), 0);
  EXPECT_LE(times.at("product").get<double>(), times.at("whole").get<double>());
  EXPECT_EQ(rows[0].at("paper_ms").at("ifft_c"), 0.95);
}

TEST(Bench, RefusesWhatItDoesNotKnow) {
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"bench", "tabel4"}, "did you mean 'table4'?"},
      {{"bench", "table4", "--layers", "L9"}, "unknown layer 'L9'"},
      {{"bench", "table4", "--engines", "gem"}, "did you mean 'gemm'?"},
      {{"bench", "table4", "--passes", "forwards"}, "did you mean 'forward'?"},
      {{"bench", "table4", "--svg", "none.svg"}, "draws no picture"},
      {{"bench", "table4", "--workspace-limit", "much"}, "found 'much'"},
      {{"bench", "table5", "--engines", "gemm"}, "works by spectra"}};
  for (const auto& [arguments, message] : mistakes) {
    const Finished run = run_program(small(arguments));
    EXPECT_EQ(run.code, 2);
    EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
  }
}

TEST(Tune, ChoosesForEveryPassAndKeepsTheChoices) {
  const auto folder = fresh_folder("tune");
  const std::string cache = "convolution.cache=" + (folder / "choices.txt").string();
  const std::vector<std::string> arguments{
      "tune", "models/digits.yaml", "--device", "cpu", "--batch", "2", "--set", cache, "-q", "--json", "-"};
  const Finished first = run_program(arguments);
  ASSERT_EQ(first.code, 0) << first.err;
  const json tuned = json::parse(first.out);
  ASSERT_EQ(tuned.at("layers").size(), 3u * 3 - 1);  // no gradient of the images
  for (const json& row : tuned.at("layers")) {
    EXPECT_LT(row.at("error").get<double>(), 2e-6) << row;
    EXPECT_NE(row.at("reason"), "cached") << row;
  }
  const std::string kept = read_text(folder / "choices.txt");
  EXPECT_NE(kept.find("2x1x8x8 * 32x1x3x3 pad 1"), std::string::npos) << kept;

  const Finished second = run_program(arguments);
  ASSERT_EQ(second.code, 0) << second.err;
  for (const json& row : json::parse(second.out).at("layers")) EXPECT_EQ(row.at("reason"), "cached") << row;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace twiddle
