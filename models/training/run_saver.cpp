#include "models/training/run_saver.h"

#include "framework/optimizers/optimizer.h"
#include "layers/sequential.h"
#include "models/config/config.h"
#include "models/training/weight_average.h"

namespace twiddle {

RunSaver::RunSaver(const std::string& run_folder, const Config::Train& train, const SavedBytes& bytes) {
  if (run_folder.empty()) return;
  store_ = std::make_unique<CheckpointStore>(run_folder, train.keep);
  saves_ = true;
  store_->prove_writable(bytes, train.checkpoint_every > 0 ? train.keep : train.epochs);
}

void RunSaver::resume(const std::string& checkpoint) {
  last_checkpoint_ = checkpoint;
  saved_ = true;
}

void RunSaver::save(Context& ctx, const Sequential& net, const SavedOptimizer& optimizer, const RunState& state,
                    const std::vector<std::string>& classes, WeightAverage* average) {
  if (store_) last_checkpoint_ = store_->save(ctx, net, optimizer, state, classes, average);
  saved_ = true;
}

void RunSaver::save_best(Context& ctx, const Sequential& net, const RunState& state,
                         const std::vector<std::string>& classes) const {
  if (store_) store_->save_best(ctx, net, classes, state);
}

}  // namespace twiddle
