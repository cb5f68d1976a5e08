#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/training/trainer.h"

namespace twiddle {

class Layer;
class Profiler;
class Sequential;

// One part of a layer's work, named as in the profiler's ranges.
struct LayerPass {
  const Layer* layer;
  const char* part;
};

// Returns all layer passes of a network in its order, without duplicates. Omits "backward" of a convolution, which
// contains its other parts.
std::vector<LayerPass> layer_passes(const Sequential& net);

// Times each layer and pass over the training steps of a run, excluding validations.
class LayerProfile : public TrainObserver {
 public:
  explicit LayerProfile(Trainer& trainer);
  bool wants_step(std::int64_t step) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  std::string table();  // with a heading

 private:
  struct Row {
    std::int64_t visits = 0;
    std::vector<double> milliseconds;  // of the first visits only, to bound memory in a long run
  };
  void take();

  const Trainer& trainer_;
  Profiler& profiler_;
  std::map<std::pair<std::string, std::string>, Row> rows_;  // by layer and part
};

}  // namespace twiddle
