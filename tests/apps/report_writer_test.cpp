#include "apps/report/report_writer.h"
#include "models/config/experiment.h"

#include <gtest/gtest.h>

#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// A run whose epochs are reported without training.
class ReportWriterTest : public testing::Test {
 protected:
  ReportWriterTest()
      : folder_(fresh_folder("report_writer")),
        trainer_(load_experiment("models/digits.yaml", {{"device", "cpu", "--device"}}), {}),
        metrics_(folder_.string(), trainer_.metrics(), steps, trainer_.state()) {}
  ~ReportWriterTest() override { fs::remove_all(folder_); }

  ReportWriter writer(ReportWriter::Clock::duration least_pause) {
    return {trainer_.config(), trainer_, metrics_, console_, folder_.string(), "twiddle train", least_pause};
  }

  // Returns how many reports were drawn in the next `epochs` epochs.
  int drawn_in(int epochs, ReportWriter& writer) {
    int drawn = 0;
    for (int i = 0; i < epochs; ++i) {
      EpochReport report;
      report.epoch = ++epoch_, report.step = epoch_ * steps, report.train_loss = 0.5;
      for (std::int64_t step = report.step - steps + 1; step <= report.step; ++step) {
        if (!metrics_.wants_step(step)) continue;
        StepReport at_step;
        at_step.epoch = epoch_, at_step.step = step, at_step.loss = 0.5 + 0.001 * static_cast<double>(step % 7);
        metrics_.on_step(at_step);
      }
      metrics_.on_epoch(report);
      writer.on_epoch(report);
      drawn += fs::remove(folder_ / "report.html") ? 1 : 0;
    }
    return drawn;
  }

  // Bytes that an epoch adds to the metrics.
  std::uintmax_t added_by_an_epoch(ReportWriter& writer) {
    const std::uintmax_t before = fs::file_size(folder_ / "metrics.jsonl");
    drawn_in(1, writer);
    return fs::file_size(folder_ / "metrics.jsonl") - before;
  }

  static constexpr std::int64_t steps = 100;  // of an epoch
  fs::path folder_;
  Trainer trainer_;
  Metrics metrics_;
  Console console_{-1};
  std::int64_t epoch_ = 0;
};

TEST_F(ReportWriterTest, CostPerEpochIsConstant) {
  ReportWriter patient = writer(std::chrono::hours(1));
  EXPECT_EQ(drawn_in(1, patient), 1);
  const std::uintmax_t early = added_by_an_epoch(patient);
  EXPECT_EQ(drawn_in(1000, patient), 0);
  EXPECT_LT(added_by_an_epoch(patient), early * 11 / 10);  // the numbers of epochs and steps are longer

  patient.write();  // as every run does at its end
  EXPECT_NE(read_text(folder_ / "report.html").find("</html>"), std::string::npos);
  EXPECT_EQ(metrics_.history().epochs.size(), 1003u);
}

TEST_F(ReportWriterTest, DrawsEpochAfterPause) {
  ReportWriter eager = writer(std::chrono::seconds(0));
  EXPECT_EQ(drawn_in(3, eager), 3);
}

}  // namespace
}  // namespace twiddle
