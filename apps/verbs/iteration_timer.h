#pragma once
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
  int warm_up = 0, steps_a_sample = 1;  // timed at once, in one interval between two events: the sample is their mean
  bool steady = false;                  // the variation fell below 1 % before time was up
  bool captured = false;                // the steps were replayed from a CUDA graph
  std::string why_not_captured;         // why not, where that was asked for
  std::size_t steps() const { return whole.samples.size() * static_cast<std::size_t>(steps_a_sample); }  // timed in all
  std::int64_t allocations = 0, waits = 0;  // of the timed steps: memory asked of the system, waits for the device
  MemoryUse memory;                         // at their end
  FrequencyBuffers::Use spectra;            // of the timed steps; a replayed step asks for none
};

// A row of the second table: a layer and one of its passes.
struct LayerTime {
  std::string layer, pass, engine, plan;  // of a convolution; empty otherwise
  std::string reason;                     // why that engine
  double milliseconds = 0, flops = 0;
  std::size_t workspace = 0;
  double error = -1;  // against the direct sum; below 0: not measured
};

// Trains a network on random numbers, for the clock alone.
class IterationTimer {
 public:
  // `batch`: the images of this process. With ranks all of them must make the same calls.
  IterationTimer(Context& ctx, const Model& model, const Loss& loss, Optimizer& optimizer, std::int64_t batch,
                 Communicator& ranks);

  // Whole iterations without any timer inside a phase, until the median is steady, or for `seconds`, or `steps` of
  // them; eager, or replayed from a graph where the device can. `together`: the ranks share each
  // batch, which makes all that follows theirs.
  IterationTimes whole_iterations(double seconds, int steps, bool capture, bool together = false);
  // A few more iterations with a timer around each layer and pass.
  std::vector<LayerTime> layer_by_layer(int steps);

 private:
  std::int64_t allocated() const;  // how often memory was asked of the system
  void run(TrainStep& step);
  void warm_up(TrainStep& step, IterationTimes& times);
  void time_steps(TrainStep& step, double seconds, int steps, IterationTimes& times);
  int as_rank_0(int number);

  Context& ctx_;
  const Model& model_;
  const Loss& loss_;
  Optimizer& optimizer_;
  Communicator& ranks_;
  Batch batch_;
};

}  // namespace twiddle
