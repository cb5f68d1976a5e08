#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/ranks/communicator.h"
#include "models/checkpoints/checkpoint.h"
#include "models/config/config.h"

namespace twiddle {

class Sequential;
class WeightAverage;
struct Context;
struct SavedOptimizer;

// What a run leaves in its folder for later: checkpoints and the best weights. Without a folder it leaves nothing.
class RunSaver {
 public:
  // Throws before the first step if the folder is not writable or the disk is too small for everything that will be
  // saved.
  RunSaver(const std::string& run_folder, const Config::Train& train, const SavedBytes& bytes);
  // Before the first step: of several ranks one may have a folder, and all have to save at once, what they have of it.
  void agree(Communicator& ranks) { saves_ = any(ranks, writes()); }

  // For a run resumed from a checkpoint: its state is saved there already.
  void resume(const std::string& checkpoint);
  void changed() { saved_ = false; }  // a step, or a validation, is not saved yet
  bool has_to_save() const { return saves_ && !saved_; }
  bool writes() const { return store_ != nullptr; }
  void save(Context& ctx, const Sequential& net, const SavedOptimizer& optimizer, const RunState& state,
            const std::vector<std::string>& classes, WeightAverage* average = nullptr);
  void save_best(Context& ctx, const Sequential& net, const RunState& state,
                 const std::vector<std::string>& classes) const;
  const std::string& last_checkpoint() const { return last_checkpoint_; }  // empty: none

 private:
  std::unique_ptr<CheckpointStore> store_;
  bool saves_ = false;
  std::string last_checkpoint_;
  bool saved_ = false;  // the last checkpoint holds all there is
};

}  // namespace twiddle
