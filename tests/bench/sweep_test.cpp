#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "apps/bench/heat_map.h"
#include "apps/bench/svg_page.h"
#include "apps/bench/sweep_results.h"
#include "framework/error.h"
#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

TEST(SweepShapes, MatchTable2OfPaper) {
  const std::vector<SweepShape> all = sweep_shapes();
  EXPECT_EQ(all.size(), 8232u);
  EXPECT_EQ(std::set<SweepShape>(all.begin(), all.end()).size(), 8232u);
  for (const SweepShape& shape : all) {
    const ConvProblem problem = shape.problem();
    ASSERT_EQ(problem.out_height(), shape.output);
    ASSERT_EQ(problem.kernel_w, shape.kernel);
  }
}

TEST(SweepShapes, LargerSampleStartsWithSmaller) {
  const std::vector<SweepShape> few = sweep_sample(10, 3), more = sweep_sample(300, 3);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), more.begin()));
  EXPECT_EQ(std::set<SweepShape>(more.begin(), more.end()).size(), 300u);
  EXPECT_NE(sweep_sample(10, 4), few);
  EXPECT_EQ(sweep_sample(100000, 1).size(), 8232u);
}

TEST(SweepShapes, ShardsCoverEachShapeOnce) {
  const std::vector<SweepShape> all = sweep_sample(11, 3);
  std::vector<SweepShape> together;
  for (int index = 1; index <= 3; ++index)
    for (const SweepShape& shape : shard_of(all, {index, 3})) together.push_back(shape);
  EXPECT_EQ(together.size(), 11u);
  EXPECT_EQ(std::set<SweepShape>(together.begin(), together.end()), std::set<SweepShape>(all.begin(), all.end()));
  EXPECT_EQ(shard_of(all, {2, 3}).front(), all[1]);
}

TEST(SweepResults, ResumeFromFile) {
  const auto folder = fresh_folder("sweep_results");
  const std::string file = (folder / "sweep.jsonl").string();
  const SweepShape shape{1, 4, 16, 3, 8}, other{1, 4, 16, 5, 8};
  {
    SweepResults results({file}, "here");
    results.add({shape, "gemm", {1, 2, 3}, 1e-7, {}});
    results.add({shape, "fft", {}, 0, "out of memory"});
  }
  SweepResults again({file}, "here");
  ASSERT_EQ(again.rows().size(), 2u);
  EXPECT_TRUE(again.knows(shape, "gemm"));
  EXPECT_TRUE(again.knows(shape, "fft"));
  EXPECT_FALSE(again.knows(other, "gemm"));
  EXPECT_DOUBLE_EQ(again.rows()[0].total(), 6);
  EXPECT_EQ(again.rows()[1].failure, "out of memory");
  EXPECT_TRUE(SweepResults({file}, "there").rows().empty());
  std::filesystem::remove_all(folder);
}

TEST(SweepResults, ReadAllFilesAndWriteFirst) {
  const auto folder = fresh_folder("sweep_files");
  const std::string first = (folder / "1.jsonl").string(), second = (folder / "2.jsonl").string();
  const SweepShape shape{1, 4, 16, 3, 8}, other{1, 4, 16, 5, 8};
  SweepResults({first}, "here").add({shape, "gemm", {1, 2, 3}, 1e-7, {}});
  SweepResults({second}, "here").add({other, "gemm", {1, 2, 3}, 1e-7, {}});
  SweepResults({second}, "there").add({other, "fft", {1, 2, 3}, 1e-7, {}});
  const std::string kept = read_text(second);
  SweepResults both({first, second}, "here");
  EXPECT_TRUE(both.knows(shape, "gemm") && both.knows(other, "gemm"));
  both.add({shape, "fft", {1, 2, 3}, 1e-7, {}});
  EXPECT_EQ(read_text(second), kept);
  EXPECT_EQ(SweepResults({first}, "here").rows().size(), 2u);

  const SweepResults recorded = SweepResults::recorded({first, second});
  EXPECT_EQ(recorded.conditions(), "here");
  EXPECT_EQ(recorded.rows().size(), 3u);
  EXPECT_THROW(SweepResults::recorded({first, (folder / "none").string()}), Error);
  std::filesystem::remove_all(folder);
}

TEST(SweepResults, MeasureAgainIfLineIsTruncated) {
  const auto folder = fresh_folder("sweep_cut");
  const std::string file = (folder / "sweep.jsonl").string();
  const SweepShape shape{1, 4, 16, 3, 8};
  SweepResults({file}, "here").add({shape, "gemm", {1, 2, 3}, 1e-7, {}});
  const std::string line = read_text(file);
  std::ofstream(file) << "not json\n[1]\n{\"on\": \"here\"}\n" << line.substr(0, line.size() / 2);
  SweepResults({file}, "here").add({shape, "gemm", {4, 5, 6}, 1e-7, {}});
  const SweepResults again({file}, "here");
  ASSERT_EQ(again.rows().size(), 1u);
  EXPECT_DOUBLE_EQ(again.rows()[0].milliseconds[0], 4);
  std::filesystem::remove_all(folder);
}

TEST(HeatMap, DistinguishesEqualFailedAndUnmeasured) {
  HeatMap map{"a <b>", "x", "y", {"1", "2"}, {"low", "high"}, {}};
  map.cells = {{{1, false}, {16, false}}, {{0, true}, {0, false}}};
  const std::string svg = map.svg();
  EXPECT_EQ(count(svg, "<rect"), 3u);
  EXPECT_EQ(count(svg, "fill=\"#f0f0f0\""), 1u);  // as fast
  EXPECT_EQ(count(svg, "✕"), 1u);
  EXPECT_EQ(count(svg, "class=\"empty\""), 1u);
  EXPECT_NE(svg.find("a &lt;b&gt;"), std::string::npos);
  const std::string page = svg_page({.all = {svg, svg, svg},
                                     .columns = 2,
                                     .width = HeatMap::width,
                                     .height = HeatMap::height,
                                     .footer = HeatMap::key(),
                                     .footer_height = HeatMap::key_height});
  EXPECT_EQ(count(page, "<svg"), count(page, "</svg>"));
  EXPECT_NE(page.find("height=\"886\""), std::string::npos);  // two rows and the key
  EXPECT_NE(page.find("not measured"), std::string::npos);
}

TEST(SvgPage, IsLegibleOnDarkPages) {
  const std::string page = svg_page({.all = {Chart{.title = "a"}.svg()}});
  EXPECT_EQ(count(page, "<svg"), count(page, "</svg>"));
  EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(page.find("class=\"paper\""), std::string::npos);
}

TEST(Bench, ResumesSweep) {
  const auto folder = fresh_folder("sweep");
  const std::string results = (folder / "sweep.jsonl").string(), picture = (folder / "sweep.svg").string();
  std::vector<std::string> arguments{"sweep",     "--device", "cpu",      "--engines", "gemm,fft",       "--batch",
                                     "1",         "-q",       "--sample", "4",         "--seed",         "9",
                                     "--results", results,    "--svg",    picture,     "--milliseconds", "0",
                                     "--json",    "-"};
  const Finished first = run_program(arguments);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto rows = nlohmann::json::parse(first.out).at("rows");
  EXPECT_GE(rows.size(), 4u);
  const std::string kept = read_text(results);
  EXPECT_EQ(count(kept, "\n"), rows.size());

  const Finished second = run_program(arguments);  // measures nothing
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(nlohmann::json::parse(second.out).at("rows"), rows);
  EXPECT_EQ(read_text(results), kept);
  std::filesystem::remove_all(folder);
}

TEST(Bench, SweepIgnoresPlansExceedingErrorLimit) {
  const auto folder = fresh_folder("sweep_precision");
  const SweepShape shape{1, 4, 16, 3, 8};
  for (const std::string precision : {"fp32", "tf32"}) {
    const std::string file = (folder / precision).string(), picture = (folder / "sweep.svg").string();
    {
      SweepResults results({file}, "cpu: 2 threads, " + precision + ", 4 GiB");
      results.add({shape, "fft", {1, 1, 1}, 1e-4, {}});
      results.add({shape, "gemm", {2, 2, 2}, 1e-7, {}});
    }
    ASSERT_EQ(run_program({"sweep", "--recorded", "--engines", "fft,gemm", "--results", file, "--svg", picture}).code,
              0);
    EXPECT_EQ(count(read_text(picture), "✕"), precision == "fp32" ? 2u : 1u) << precision;  // one is the key's
  }
  std::filesystem::remove_all(folder);
}

TEST(Bench, DrawsShardsOfSweepTogether) {
  const auto folder = fresh_folder("shards");
  const std::string first = (folder / "1.jsonl").string(), second = (folder / "2.jsonl").string();
  const std::string picture = (folder / "sweep.svg").string();
  for (const char* shard : {"1/2", "2/2"}) {
    const Finished measured =
        run_program({"sweep", "--device", "cpu", "--engines", "gemm,fft", "--batch", "1", "-q", "--sample", "5",
                     "--shard", shard, "--results", shard[0] == '1' ? first : second, "--milliseconds", "0"});
    ASSERT_EQ(measured.code, 0) << measured.err;
  }
  const std::string kept = read_text(first) + read_text(second);
  const auto show = [&](const std::string& engines) {
    return run_program({"sweep", "--recorded", "--engines", engines, "--batch", "1", "--sample", "5", "--results",
                        first + "," + second, "--svg", picture, "--json", "-"});
  };
  const Finished shown = show("fft,gemm");
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json.at("rows").size(), count(kept, "\n"));
  EXPECT_EQ(json.at("measured_on").get<std::string>().rfind("cpu: ", 0), 0u);
  EXPECT_NE(read_text(picture).find("fft over gemm"), std::string::npos);
  EXPECT_EQ(read_text(first) + read_text(second), kept);

  EXPECT_EQ(show("fft").code, 2);
  EXPECT_NE(show("fft,cudnn").err.find("cudnn"), std::string::npos);
  EXPECT_EQ(run_program({"sweep", "--recorded"}).code, 2);
  for (const char* shard : {"3/2", "0/2", "1", "1/2/3", "a/b"})
    EXPECT_EQ(run_program({"sweep", "--shard", shard}).code, 2) << shard;
  EXPECT_EQ(run_program({"table4", "--shard", "1/2"}).code, 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace twiddle
