#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "framework/device.h"
#include "framework/tensor.h"
#include "models/config/config.h"
#include "models/training/trainer.h"

namespace twiddle {

// Reports steps to observers, with how fast they go. The numbers of a step are copied to the host asynchronously after
// it. A step is reported while the next one runs, so that a GPU never idles for terminal output.
class StepReporter {
 public:
  StepReporter(Stream& stream, const Config::Train& train);

  // Starts the clock of an epoch in which the given number of batches is done. The remaining time is computed from the
  // batches since then, or since measure_pace_from: the first step of a process chooses engines, which may take longer
  // than all that follows.
  void begin_epoch(std::int64_t batches);
  void measure_pace_from(std::int64_t batches);
  double epoch_seconds() const;

  // A step whose numbers are on their way to the host.
  struct Sent {
    StepReport report;
    std::vector<TrainObserver*> listeners;
    double loss_sum = 0;  // of the epoch so far; not finite from the first bad step on
  };
  // `scale`: GradientScale::state(), or undefined.
  void send(const StepReport& report, std::vector<TrainObserver*> listeners, const Tensor& loss, const Tensor& sums,
            const Tensor& scale = {});
  std::optional<Sent> take();         // the step that was sent last, once; waits until its numbers are here
  void forget() { latest_.reset(); }  // its listeners may be destroyed

 private:
  using Clock = std::chrono::steady_clock;

  Stream& stream_;
  std::int64_t epochs_, batch_size_;
  Clock::time_point epoch_start_, pace_start_;
  std::int64_t first_batch_ = 0, pace_batch_ = 0;  // that were done at those moments
  std::shared_ptr<void> numbers_;                  // on the host
  std::optional<Sent> latest_;
  std::shared_ptr<Event> numbers_here_;
};

}  // namespace twiddle
