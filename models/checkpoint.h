#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/context.h"
#include "framework/optimizer.h"
#include "layers/sequential.h"

namespace twiddle {

// Where a run stands, apart from its tensors.
struct RunState {
  std::int64_t step = 0;   // updates done
  std::int64_t epoch = 0;  // finished epochs
  std::int64_t batch = 0;  // batches done within the epoch that is under way
  std::uint64_t random_seed = 1, random_position = 0;
  double best_top1 = -1;
  std::int64_t best_epoch = 0;
  double loss_sum = 0;  // of the epoch under way, so that a resumed epoch reports the same mean
  std::int64_t images_seen = 0, correct_top1 = 0, correct_top5 = 0;
};

// <run>/checkpoints/step-00000341/{model,state}.safetensors: a folder that appears whole, by one rename, or not at all.
class CheckpointStore {
 public:
  CheckpointStore(std::string run_folder, std::int64_t keep);
  void prove_writable(
      std::size_t bytes) const;  // throws before step 1 where the folder cannot be written or space is short
  std::string save(Context& ctx, const Sequential& net, const Optimizer& optimizer, const RunState& state,
                   const std::vector<std::string>& classes);  // the new folder; older ones than `keep` go
  void save_best(Context& ctx, const Sequential& net, const std::vector<std::string>& classes,
                 const RunState& state) const;  // <run>/best.safetensors
  std::vector<std::string> list() const;        // checkpoint folders, oldest first

 private:
  std::string run_folder_;
  std::int64_t keep_;
};

// Puts everything back, or throws and changes nothing: all of a file is read and held against the net before the first
// write.
RunState restore_checkpoint(const std::string& folder, Context& ctx, const Sequential& net, Optimizer& optimizer);

// Weights alone. Names and shapes must fit; the message tells which do not.
struct WeightsInfo {
  std::vector<std::string> classes;  // names kept with the weights; may be empty
};
void save_weights(const std::string& path, Context& ctx, const Sequential& net,
                  const std::vector<std::string>& classes);
WeightsInfo load_weights(const std::string& path, Context& ctx, const Sequential& net);

// The weights file that a run folder, checkpoint folder or file stands for: best, else newest. Error of kind data where
// there is none.
std::string find_weights(const std::string& path);

}  // namespace twiddle
