#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

class Optimizer;
class Sequential;
class WeightAverage;
struct Context;
struct SavedOptimizer;

// The state of a run, except for its tensors.
struct RunState {
  std::int64_t step = 0;      // updates done
  std::int64_t epoch = 0;     // finished epochs
  std::int64_t position = 0;  // within the epoch under way: images of its order done or left out; below 0: not known
  std::int64_t batch = 0;     // the same in batches of the size that the run has now
  std::uint64_t random_seed = 1, random_position = 0;  // save takes them from the context, restore puts them there
  std::int64_t best_epoch = 0;                         // by the watched metric; 0: none yet
  double best_score = -1;                              // of that epoch
  std::int64_t improved_epoch = 0;  // the last one that bettered the score by more than early stopping asks; 0: none
  double improved_score = -1;       // of that epoch
  std::string watched;              // the metric's name
  std::string validation_set;       // fingerprint() of the data that the scores are of; empty: not known
  std::string precision;            // of the steps before this state; empty: not known
  std::int64_t images = 0;          // trained on in the epoch under way
  double loss_sum = 0;              // over those images, so that a resumed epoch reports the same mean
  std::int64_t right = 0;           // of those images, whose label came first
  double loss_scale = 0;            // of the next step; 0: the run has none
  std::int64_t good_steps = 0, skipped_steps = 0, left_out = 0;  // see LossScale
  std::int64_t limit_batches = 0, overfit_batch = 0;             // Trainer::Options, as the run was begun
};

// Bytes of the tensors in files that a run leaves: a checkpoint, with the optimizer's state of all ranks, and weights.
struct SavedBytes {
  std::size_t checkpoint = 0, weights = 0;
};
SavedBytes saved_bytes(const Sequential& net, const Optimizer& optimizer, bool averages);

// <run>/checkpoints/step-00000341/{model,state}.safetensors: a folder that appears complete, by one rename, or not at
// all.
class CheckpointStore {
 public:
  CheckpointStore(std::string run_folder, std::int64_t keep);  // touches nothing yet
  // Throws before step 1 if the folder is not writable, or if the disk is too small for everything kept at once: `keep`
  // checkpoints (fewer if fewer are saved), one more while it is written, and best.safetensors. Space that the run's
  // existing files use counts as available. Leftovers of a killed save are removed.
  void prove_writable(const SavedBytes& bytes, std::int64_t saves) const;
  // Returns the new folder, which replaces one of the same step. Removes checkpoints older than the newest `keep`, and
  // leftovers of a killed save. Checkpoints of later steps belong to a future that a resumed run has left: they are
  // renamed to abandoned-step-N, so that the newest is the last saved. They go when the run has come to their step
  // again; until then the `keep` newest of them stay.
  std::string save(Context& ctx, const Sequential& net, const SavedOptimizer& optimizer, const RunState& state,
                   const std::vector<std::string>& classes, WeightAverage* average = nullptr);
  // <run>/best.safetensors, with epoch, step and score in its metadata.
  void save_best(Context& ctx, const Sequential& net, const std::vector<std::string>& classes,
                 const RunState& state) const;
  std::vector<std::string> list() const;  // checkpoint folders, oldest first

 private:
  std::string run_folder_, folder_;
  std::int64_t keep_;
};

// Writes the two files of a checkpoint into an existing folder. With an average, its weights are those of
// model.safetensors, which is what evaluation reads, and state.safetensors has those with which training continues.
void write_checkpoint(const std::string& folder, Context& ctx, const Sequential& net, const SavedOptimizer& optimizer,
                      RunState state, const std::vector<std::string>& classes, WeightAverage* average = nullptr);

// Throws unless both files are whole and belong together.
void check_checkpoint(const std::string& folder);

// Restores everything, or throws and changes nothing: all of a file is read and checked against the net before the
// first write. If the checkpoint has no average, the current one stays unchanged.
RunState restore_checkpoint(const std::string& folder, Context& ctx, const Sequential& net, Optimizer& optimizer,
                            WeightAverage* average = nullptr);

// The names of classes kept with its weights; may be empty.
std::vector<std::string> checkpoint_classes(const std::string& folder);

// The checkpoint folder that --resume means: the newest of a run folder, or the folder itself. If it is damaged, the
// Error names an older one that is intact.
std::string newest_checkpoint(const std::string& path);

// The weights file that a run folder, checkpoint folder or file stands for: best, else newest. Error of kind data where
// there is none.
std::string find_weights(const std::string& path);

}  // namespace twiddle
