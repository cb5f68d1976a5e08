#include "apps/best_validation.h"

#include <gtest/gtest.h>

#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

TEST(BestValidation, IsThatOfTheBestEpochAndOutlivesTheProcess) {
  const std::string folder = fresh_folder("best_validation").string();
  EvalResult good, worse;
  good.scores.top1 = 0.75, good.images = 4, good.classes = 2;
  good.confusion = {1, 1, 0, 2}, good.outside = {0, 0}, good.wrong = {{3, 0, 1, 0.5f}};
  std::int64_t best_epoch = 0;
  BestValidation first(folder, best_epoch, "top1");
  EXPECT_EQ(first.get(), nullptr);
  const auto end_epoch = [&](BestValidation& best, std::int64_t epoch, const EvalResult& result, bool is_best) {
    EpochReport report;
    report.epoch = epoch, report.best = is_best;
    if (is_best) best_epoch = epoch;
    best.take(report, result, best_epoch);
  };
  end_epoch(first, 1, good, true);
  end_epoch(first, 2, worse, false);
  EXPECT_EQ(first.get()->epoch, 1);

  EXPECT_NE(read_text(folder + "/best.json").find("\"metric\":\"top1\""), std::string::npos);
  BestValidation resumed(folder, best_epoch, "top1");
  ASSERT_NE(resumed.get(), nullptr);
  EXPECT_EQ(resumed.get()->result.confusion, good.confusion);
  EXPECT_EQ(resumed.get()->result.wrong.at(0).index, 3);
  EXPECT_FLOAT_EQ(resumed.get()->result.wrong.at(0).probability, 0.5f);
  end_epoch(resumed, 3, worse, false);
  EXPECT_EQ(resumed.get()->epoch, 1);
}

TEST(BestValidation, WhereTheBestIsNotAtHandIsTheLast) {
  const std::filesystem::path folder = fresh_folder("no_best_validation");
  std::ofstream(folder / "best.json") << "{\"epoch\": 7";
  BestValidation best(folder.string(), 7, "top1");
  EXPECT_EQ(best.get(), nullptr);
  for (const std::int64_t epoch : {8, 9}) {
    EpochReport report;
    report.epoch = epoch;
    best.take(report, {}, 7);
    EXPECT_EQ(best.get()->epoch, epoch);
  }
}

}  // namespace
}  // namespace twiddle
