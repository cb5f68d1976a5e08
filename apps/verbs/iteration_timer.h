#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fft/frequency_buffers.h"
#include "framework/optimizers/optimizer.h"
#include "layers/conv/tuner/timing.h"
#include "models/builder.h"
#include "models/training/train_step.h"

namespace twiddle {

struct IterationTimes {
  Timing forward, backward, update, whole;
  // steps_a_sample: steps timed in one interval between two events; the sample is their mean
  int warm_up = 0, steps_a_sample = 1;
  bool steady = false;           // the variation fell below 1 % before the time limit
  bool captured = false;         // the steps were replayed from a CUDA graph
  std::string why_not_captured;  // empty if captured or if capture was not requested
  // all timed steps
  std::size_t steps() const { return whole.samples.size() * static_cast<std::size_t>(steps_a_sample); }
  std::int64_t allocations = 0, waits = 0;  // in the timed steps: allocations from the driver, device synchronizations
  MemoryUse memory;                         // after the timed steps
  FrequencyBuffers::Use spectra;            // in the timed steps; replayed steps are not counted
};

// A row of the second table: one pass of one layer.
struct LayerTime {
  std::string layer, pass, engine, plan;  // engine and plan of a convolution; otherwise empty
  std::string reason;                     // why the engine was selected
  double milliseconds = 0, flops = 0;
  std::size_t workspace = 0;
  double error = -1;  // relative to the direct sum; less than 0: not measured
};

// Trains a network on random numbers to measure its speed.
class IterationTimer {
 public:
  // `batch`: the images of this process. All ranks must make the same calls.
  IterationTimer(Context& ctx, const Model& model, const Loss& loss, Optimizer& optimizer, std::int64_t batch,
                 Communicator& ranks);

  // Times whole iterations until the median is steady, for at most `seconds`, or for exactly `steps` of them. There are
  // no timers within a phase. `capture`: replays a CUDA graph if the device supports it, else runs eagerly. `together`:
  // the ranks train on one batch, also in all later calls.
  IterationTimes whole_iterations(double seconds, int steps, bool capture, bool together = false);
  // Times the forward pass of evaluation in the same way: only `whole`, `steady`, `captured` and the counts are set.
  IterationTimes forward_passes(double seconds, int steps, bool capture);
  // Times each layer and pass over a few more iterations.
  std::vector<LayerTime> layer_by_layer(int steps);

 private:
  std::int64_t allocated() const;  // number of allocations from the driver
  void run(TrainStep& step);
  void warm_up(TrainStep& step, IterationTimes& times);
  void time_steps(TrainStep& step, double seconds, int steps, IterationTimes& times);
  std::unique_ptr<Graph> capture(const std::function<void()>& pass, std::string& why_not);
  // Runs `step` in samples of as many steps as take sample_ms, and calls `after` for each sample.
  void sample(double seconds, int steps, IterationTimes& times, const std::function<void()>& step,
              const std::function<void()>& after);
  int as_rank_0(int number);

  Context& ctx_;
  const Model& model_;
  const Loss& loss_;
  Optimizer& optimizer_;
  Communicator& ranks_;
  Batch batch_;
};

}  // namespace twiddle
