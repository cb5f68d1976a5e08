#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/bench/bench.h"
#include "apps/bench/largest_error.h"
#include "tests/apps/run_program.h"
#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

using Json = nlohmann::json;

// Operations of VGG-E's convolutions for one image, as in table 3 of the paper.
TEST(WinogradBench, CountsOperationsAsInPaper) {
  double gigaflops = 0;
  for (const BenchLayer& layer : vgg_layers()) {
    ConvProblem one = layer.problem;
    one.batch = 1;
    gigaflops += layer.depth * one.flops() * 1e-9;
  }
  EXPECT_NEAR(gigaflops, 39.02, 0.01);
  for (const PaperTimes& paper : {lavin_fp32(), lavin_fp16()}) {
    EXPECT_EQ(paper.rows.size(), 7u);
    for (const auto& [place, printed] : paper.rows) {
      const double work = gigaflops * std::stoi(place.first);
      EXPECT_NEAR(work / printed[0], printed[1], 0.006) << place.first;
      EXPECT_NEAR(work / printed[2], printed[3], 0.006) << place.first;
      EXPECT_NEAR(printed[0] / printed[2], printed[4], 0.011) << place.first;
    }
  }
}

TEST(WinogradBench, MeasuresTimesAndErrorsOfLayers) {
  const auto folder = fresh_folder("winograd");
  const std::string csv = (folder / "table.csv").string();
  const Finished run = run_program({"winograd", "--device", "cpu", "--layers", "vgg5", "--batch-size", "1",
                                    "--milliseconds", "0", "--engines", "winograd,gemm", "--csv", csv, "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rows = Json::parse(run.out).at("rows");
  const std::vector<std::string> engines{"winograd", "winograd FX", "gemm"};
  ASSERT_EQ(rows.size(), 3u + 3 + 3);  // a layer by all of these, its sum, errors of two forms and of the other engine
  for (std::size_t engine = 0; engine < engines.size(); ++engine) {
    const Json &layer = rows[engine], &sum = rows[engines.size() + engine];
    EXPECT_EQ(layer.at("engine"), engines[engine]);
    EXPECT_EQ(layer.at("engine"), sum.at("engine"));
    EXPECT_EQ(layer.at("pass"), "forward");
    EXPECT_EQ(layer.at("depth"), 4);
    EXPECT_EQ(layer.at("batch"), 1);
    EXPECT_EQ(sum.at("layer"), "sum");
    EXPECT_DOUBLE_EQ(sum.at("ms"), 4 * layer.at("ms").get<double>());
    EXPECT_NEAR(sum.at("effective_flops_per_second").get<double>() /
                    (2 * layer.at("multiply_adds").get<double>() / (layer.at("ms").get<double>() * 1e-3)),
                1, 1e-9);
    EXPECT_FALSE(sum.contains("paper_fp32"));  // printed for the whole network alone
  }
  const char* const algorithms[] = {"winograd F(2x2)", "winograd F(4x4)", "gemm"};
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& row = rows[2 * engines.size() + i];
    EXPECT_EQ(row.at("part"), "errors");
    EXPECT_EQ(row.at("algorithm"), algorithms[i]);
    EXPECT_GT(row.at("largest_error"), 1e-6);
    EXPECT_LT(row.at("largest_error"), row.at("paper").at("F(4x4)"));
  }
  const std::string text = read_text(csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  std::filesystem::remove_all(folder);
}

TEST(WinogradBench, SumsPassesOfTrainingStep) {
  const Finished run = run_program({"winograd", "--device", "cpu", "--layers", "L4", "--batch-size", "1",
                                    "--milliseconds", "0", "--engines", "fft,winograd", "--parts", "speed", "--passes",
                                    "forward,backward_input,backward_weight", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rows = Json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), 3u + 4 * 2);  // winograd does no 7x7: its sums say so
  double together = 0;
  for (std::size_t pass = 0; pass < 3; ++pass) together += rows[pass].at("in_step_ms").get<double>();
  for (const Json& row : rows) {
    if (row.at("layer") != "sum" || row.at("pass") != "together") continue;
    EXPECT_EQ(row.contains("failure"), row.at("engine") == "winograd") << row;
    if (row.at("engine") == "fft") {
      EXPECT_DOUBLE_EQ(row.at("ms"), together);
    }
  }
}

TEST(WinogradBench, PrintsTableAndRefusesUnknownPart) {
  const Finished run = run_program({"winograd", "--device", "cpu", "--layers", "L4", "--batch-size", "1",
                                    "--milliseconds", "0", "--engines", "gemm", "--parts", "speed"});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const char* part : {"batch 1, forward", "layer  depth  GFLOP", "TFLOP/s", "all layers, forward", "gemm ms"})
    EXPECT_NE(run.out.find(part), std::string::npos) << part << " is not in\n" << run.out;
  const Finished mistake = run_program({"winograd", "--parts", "error"});
  EXPECT_EQ(mistake.code, 2);
  EXPECT_NE(mistake.err.find("did you mean 'errors'?"), std::string::npos) << mistake.err;
}

// Writes a plan's result and spoils one element.
class SpoilingPlan final : public ConvPlan {
 public:
  SpoilingPlan(std::shared_ptr<const ConvPlan> plan, float by) : ConvPlan(plan->facts()), plan_(plan), by_(by) {}
  void run(Context& ctx, ConvOperands& operands) const override {
    plan_->run(ctx, operands);
    operands.y.write()[7] += by_;
  }

 private:
  std::shared_ptr<const ConvPlan> plan_;
  float by_;
};

TEST(UniformCheck, FindsTheLargestError) {
  LayerBench bench({.engines = {"gemm"}});
  Context& ctx = bench.context();
  const ConvProblem problem = conv_problem("1x3x8x8 * 4x3x3x3 pad 1");
  const UniformCheck check(*ctx.stream, problem);
  const auto plan = bench.engines().front()->plans(problem, ConvPass::forward).front();
  EXPECT_LT(check.largest_error(ctx, *plan), 1e-5);
  EXPECT_NEAR(check.largest_error(ctx, SpoilingPlan(plan, -0.5f)), 0.5, 1e-5);
  EXPECT_TRUE(std::isnan(check.largest_error(ctx, SpoilingPlan(plan, std::nanf("")))));
}

}  // namespace
}  // namespace twiddle
