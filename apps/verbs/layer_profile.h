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

// A layer and a part of its work, as the profiler's ranges are named.
struct LayerPass {
  const Layer* layer;
  const char* part;
};

// All that the layers of a network may do, in its order, each thing once: "backward" of a convolution is left out,
// since it contains its other parts.
std::vector<LayerPass> layer_passes(const Sequential& net);

// Times each layer and pass over the training steps of a run, not over its validations.
class LayerProfile : public TrainObserver {
 public:
  explicit LayerProfile(Trainer& trainer);
  bool wants_step(std::int64_t step) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  std::string table();  // and a line that opens it

 private:
  struct Row {
    std::int64_t visits = 0;
    std::vector<double> milliseconds;  // of the first visits alone: a long run must not fill the memory
  };
  void take();

  const Trainer& trainer_;
  Profiler& profiler_;
  std::map<std::pair<std::string, std::string>, Row> rows_;  // by layer and part
};

}  // namespace twiddle
