#include "models/training/step_reporter.h"
#include "models/config/config.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twiddle {
namespace {

class StepReporterTest : public testing::Test {
 protected:
  // The fifth of ten batches, with a loss of 0.5 and a sum of 4 over the epoch.
  void send() {
    StepReport report;
    report.epoch = 1, report.batch = 5, report.batches = 10;
    reporter_.send(report, {}, Tensor::filled(*stream_, {1}, 0.5f), Tensor::filled(*stream_, {2}, 4));
  }
  std::unique_ptr<Stream> stream_ = make_stream({});
  StepReporter reporter_{*stream_, Config::Train{}};
};

TEST_F(StepReporterTest, ReportsEachStepOnce) {
  reporter_.begin_epoch(3);
  EXPECT_FALSE(reporter_.take().has_value());
  send();
  const auto sent = reporter_.take();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(sent->report.loss, 0.5);
  EXPECT_EQ(sent->loss_sum, 4);
  EXPECT_GT(sent->report.images_per_second, 0);
  EXPECT_GT(sent->report.eta_seconds, 0);
  EXPECT_FALSE(reporter_.take().has_value());
}

TEST_F(StepReporterTest, HasNoEtaBeforeFirstBatch) {
  reporter_.begin_epoch(3);
  reporter_.measure_pace_from(5);
  send();
  EXPECT_TRUE(std::isnan(reporter_.take()->report.eta_seconds));
}

TEST_F(StepReporterTest, ForgetsStep) {
  send();
  reporter_.forget();
  EXPECT_FALSE(reporter_.take().has_value());
}

}  // namespace
}  // namespace twiddle
