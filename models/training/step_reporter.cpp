#include "models/training/step_reporter.h"

#include <limits>
#include <utility>

#include "models/config/config.h"

namespace twiddle {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// On the host.
struct Numbers {
  float loss, loss_sum, scale[4];
};

}  // namespace

StepReporter::StepReporter(Stream& stream, const Config::Train& train)
    : stream_(stream),
      epochs_(train.epochs),
      batch_size_(train.batch_size),
      numbers_(stream.allocate_host(sizeof(Numbers))) {}

void StepReporter::begin_epoch(std::int64_t batches) {
  epoch_start_ = Clock::now();
  first_batch_ = batches;
  measure_pace_from(batches);
}

void StepReporter::measure_pace_from(std::int64_t batches) {
  pace_start_ = Clock::now();
  pace_batch_ = batches;
}

double StepReporter::epoch_seconds() const {
  return seconds_since(epoch_start_);
}

void StepReporter::send(const StepReport& report, std::vector<TrainObserver*> listeners, const Tensor& loss,
                        const Tensor& sums, const Tensor& scale) {
  auto* const to = static_cast<Numbers*>(numbers_.get());
  stream_.copy(&to->loss, loss.read(), sizeof(float));
  stream_.copy(&to->loss_sum, sums.read(), sizeof(float));
  if (scale.defined())
    stream_.copy(to->scale, scale.read(), scale.bytes());
  else
    to->scale[0] = to->scale[2] = 0;
  latest_ = {report, std::move(listeners)};
  numbers_here_ = stream_.record_event();
}

std::optional<StepReporter::Sent> StepReporter::take() {
  if (!latest_) return std::nullopt;
  numbers_here_->wait();
  const auto* const from = static_cast<const Numbers*>(numbers_.get());
  StepReport& report = latest_->report;
  report.loss = from->loss;
  report.loss_scale = from->scale[0];
  report.skipped_steps = static_cast<std::int64_t>(from->scale[2]);
  latest_->loss_sum = from->loss_sum;
  const auto done = static_cast<double>(report.batch - first_batch_);
  report.images_per_second = done * static_cast<double>(batch_size_) / epoch_seconds();
  const auto left = static_cast<double>((epochs_ - report.epoch + 1) * report.batches - report.batch);
  const std::int64_t paced = report.batch - pace_batch_;
  report.eta_seconds = paced > 0 ? left * seconds_since(pace_start_) / static_cast<double>(paced)
                                 : std::numeric_limits<double>::quiet_NaN();  // not known yet
  return std::exchange(latest_, std::nullopt);
}

}  // namespace twiddle
