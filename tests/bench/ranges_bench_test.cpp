#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "apps/bench/range_check.h"
#include "framework/context.h"
#include "layers/conv/cast_around.h"
#include "layers/conv/engines/engines.h"
#include "tests/apps/run_program.h"
#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

using Json = nlohmann::json;

TEST(RangesBench, ChecksEveryPlanInEveryRange) {
  const Finished run = run_program({"ranges", "--device", "cpu", "--layers", "L5", "--batch-size", "2", "--engines",
                                    "gemm,winograd", "--json", "-"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::map<std::string, int> rows_of;
  std::map<std::string, double> uniform;
  const Json result = Json::parse(run.out);
  for (const Json& row : result.at("rows")) {
    const std::string plan = row.at("plan"), range = row.at("range"), engine = row.at("engine");
    ++rows_of[row.at("pass")];
    const double error = row.at("error"), worst = row.at("worst_row");
    EXPECT_GT(error, 0) << plan;
    EXPECT_GE(worst, error * 0.99) << plan;  // the mean of all rows, weighted by their norms, and the worst
    EXPECT_LE(worst, 1e-5) << plan << ", " << range;
    if (range == "uniform") uniform[engine + plan.substr(0, 3)] = error;
  }
  const int ranges = static_cast<int>(hard_ranges().size());
  EXPECT_EQ(rows_of["forward"], 3 * ranges);  // gemm, and two forms of winograd
  EXPECT_EQ(rows_of["backward_weight"], 3 * ranges);
  EXPECT_GT(uniform["winograd6x6"], 1.5 * uniform["winograd4x4"]);  // F(4x4) multiplies errors more than F(2x2)
}

TEST(RangesBench, EveryPlanMeetsLimitsOf16Bits) {
  Context ctx;
  const auto expect_limits = [&](const ConvProblem& problem, ConvPass pass, const Range& range) {
    const RangeCheck check(*ctx.stream, problem, pass, range);
    for (auto& each : make_conv_engines({}))
      for (const auto& plan : cast_around(std::move(each))->plans(problem, pass)) {
        const RangeCheck::Errors errors = check.errors(ctx, *plan);
        const double limit = promise(problem.precision, pass);
        EXPECT_LE(errors.all, limit) << full_name(*plan) << ", " << range.name << ", " << to_string(pass);
        EXPECT_LE(errors.worst_row, limit) << full_name(*plan) << ", " << range.name << ", " << to_string(pass);
      }
  };
  for (ConvProblem problem : conv_problems({"6x8x9x9 * 8x8x3x3 pad 1", "4x6x13x12 * 8x3x5x5 pad 2 groups 2"}))
    for (const Precision precision : {Precision::bf16, Precision::fp16})
      for (const ConvPass pass : every_pass)
        for (const Range& range : hard_ranges()) {
          problem.precision = precision;
          if (precision == Precision::bf16 || !range.exceeds_fp16) expect_limits(problem, pass, range);
        }
}

}  // namespace
}  // namespace twiddle
