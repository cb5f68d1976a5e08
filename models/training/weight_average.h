#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "framework/tensor.h"

namespace twiddle {

class Sequential;
struct Parameter;
struct StepNumbers;

// An exponential moving average of a network's weights, as torch.optim.swa_utils.AveragedModel keeps it with
// get_ema_multi_avg_fn(decay) and use_buffers=True. The first update takes the weights as they are; each later one
// moves the average towards them: average += (1 - decay) (weight - average). Batch norm's running statistics are
// averaged like all else. With a warm-up, the decay of a run's n-th update is min(decay, (1 + n) / (10 + n)), as in
// TensorFlow's ExponentialMovingAverage with num_updates: the average of a short run forgets its first weights, too.
class WeightAverage {
 public:
  WeightAverage(Stream& stream, const Sequential& net, double decay, bool warms_up = false);

  // One update: `share` is next_share(), on the device. The guard is respected. update() only launches kernels, so that
  // it can be captured with a step; the caller that runs the step also calls count().
  void update(Stream& stream, const StepNumbers& share);
  double next_share() const;
  void count() { begun_ = true, ++updates_; }
  void count_from(std::int64_t updates) { updates_ = updates; }  // of the run, before this process

  bool begun() const { return begun_; }        // false: there has been no update
  void restore(std::vector<Tensor> averages);  // in the order of net.parameters()
  // The net's weights become the average, and the average the weights; back again at the next call. Nothing is copied.
  void exchange();

 private:
  std::vector<Parameter*> parameters_;
  std::vector<Tensor> averages_;  // of each parameter
  double decay_;
  bool warms_up_, begun_ = false;
  std::int64_t updates_ = 0;  // of the run
};

// The net has averaged weights while this lives, where an average is kept and has begun.
class AveragedWeights {
 public:
  explicit AveragedWeights(WeightAverage* average) : average_(average && average->begun() ? average : nullptr) {
    if (average_) average_->exchange();
  }
  ~AveragedWeights() {
    if (average_) average_->exchange();
  }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  WeightAverage* average_;
};

}  // namespace twiddle
