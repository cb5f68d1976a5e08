#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "apps/bench/range_check.h"
#include "tests/apps/run_program.h"

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

}  // namespace
}  // namespace twiddle
