#include "apps/report/best_validation.h"

#include <gtest/gtest.h>

#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

const BestValidation::Data four_images{{.images = 4, .classes = 2, .outputs = 2}, "4 images, a1b2"};

TEST(BestValidation, IsRestoredByNextProcess) {
  const std::string folder = fresh_folder("best_validation").string();
  EvalResult good, worse;
  good.scores.top1 = 0.75, good.images = 4, good.classes = 2;
  good.confusion = {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 1}, 2}}, good.outside = {0, 0}, good.wrong = {{3, 0, 1, 0.5f}};
  std::int64_t best_epoch = 0;
  BestValidation first(folder, best_epoch, "top1", four_images);
  EXPECT_EQ(first.get(), nullptr);
  const auto end_epoch = [&](BestValidation& best, std::int64_t epoch, const EvalResult& result, bool is_best) {
    EpochReport report;
    report.epoch = epoch, report.best = is_best;
    if (is_best) best_epoch = epoch;
    best.take(report, std::make_shared<const EvalResult>(result), best_epoch);
  };
  end_epoch(first, 1, good, true);
  end_epoch(first, 2, worse, false);
  EXPECT_EQ(first.get()->epoch, 1);

  EXPECT_NE(read_text(folder + "/best.json").find("\"metric\":\"top1\""), std::string::npos);
  BestValidation resumed(folder, best_epoch, "top1", four_images);
  ASSERT_NE(resumed.get(), nullptr);
  EXPECT_EQ(resumed.get()->result->confusion, good.confusion);
  EXPECT_EQ(resumed.get()->result->wrong.at(0).index, 3);
  EXPECT_FLOAT_EQ(resumed.get()->result->wrong.at(0).probability, 0.5f);
  end_epoch(resumed, 3, worse, false);
  EXPECT_EQ(resumed.get()->epoch, 1);

  for (const BestValidation::Data& other : {BestValidation::Data{{.images = 3, .classes = 2, .outputs = 2}},
                                            BestValidation::Data{four_images.set, "4 images, c3d4"}}) {
    const BestValidation moved(folder, best_epoch, "top1", other);
    EXPECT_EQ(moved.get(), nullptr);
    EXPECT_NE(moved.discarded(), "");
  }
}

TEST(BestValidation, DiscardsFolderInsteadOfFile) {
  const std::filesystem::path folder = fresh_folder("folder_for_best_validation");
  std::filesystem::create_directories(folder / "best.json");
  const BestValidation best(folder.string(), 7, "top1", four_images);
  EXPECT_EQ(best.get(), nullptr);
  EXPECT_NE(best.discarded().find("it is not a regular file"), std::string::npos) << best.discarded();
}

TEST(BestValidation, FallsBackToLastValidation) {
  const std::filesystem::path folder = fresh_folder("no_best_validation");
  std::ofstream(folder / "best.json") << "{\"epoch\": 7";
  BestValidation best(folder.string(), 7, "top1", four_images);
  EXPECT_EQ(best.get(), nullptr);
  EXPECT_NE(best.discarded().find("best.json does not match the validation set: it is not a JSON object"),
            std::string::npos)
      << best.discarded();
  for (const std::int64_t epoch : {8, 9}) {
    EpochReport report;
    report.epoch = epoch;
    best.take(report, std::make_shared<const EvalResult>(), 7);
    EXPECT_EQ(best.get()->epoch, epoch);
  }
}

}  // namespace
}  // namespace twiddle
