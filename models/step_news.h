#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/trainer.h"

namespace twiddle {

// A step that somebody wants to hear of: its numbers go to the host behind it, and nobody waits for them. A GPU does
// not stand still for a line on the terminal: a step is told when the one after it is under way.
class StepNews {
 public:
  struct Arrived {
    StepReport report;
    std::vector<TrainObserver*> listeners;
    double loss_sum = 0;  // of the epoch so far; not finite from the first bad step on
  };

  explicit StepNews(Stream& stream) : stream_(stream), numbers_(stream.allocate_host(2 * sizeof(float))) {}

  void send(const StepReport& report, std::vector<TrainObserver*> listeners, const Tensor& loss, const Tensor& sums) {
    auto* const to = static_cast<float*>(numbers_.get());
    stream_.copy(to, loss.read(), sizeof(float));
    stream_.copy(to + 1, sums.read(), sizeof(float));
    latest_.emplace();
    latest_->report = report;
    latest_->listeners = std::move(listeners);
    here_ = stream_.mark();
  }

  // The step that was sent last, once; waits until its numbers are here.
  std::optional<Arrived> take() {
    if (!latest_) return std::nullopt;
    here_->wait();
    const auto* const from = static_cast<const float*>(numbers_.get());
    latest_->report.loss = from[0];
    latest_->loss_sum = from[1];
    return std::exchange(latest_, std::nullopt);
  }

  void forget() { latest_.reset(); }  // its listeners may be gone

 private:
  Stream& stream_;
  std::shared_ptr<void> numbers_;  // on the host
  std::optional<Arrived> latest_;
  std::shared_ptr<Mark> here_;  // its numbers
};

}  // namespace twiddle
