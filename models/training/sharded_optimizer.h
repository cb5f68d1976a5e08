#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/context.h"
#include "framework/optimizers/optimizer.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

// Updates a network's weights on several ranks, each of which updates one shard of them and keeps the optimizer's state
// of that shard alone (ZeRO-1): gradients are reduce-scattered, and the updated weights are all-gathered. This
// transfers the same number of bytes as an all-reduce of the gradients.
//
// Weights and gradients are in buckets, so that a step has few collectives and copies nothing for them. A bucket holds
// intact parameters, in the order in which the backward pass computes their gradients: a bucket is reduce-scattered
// while the backward pass computes the next one's gradients. All-gathers overlap with the next forward pass, in its
// order.
class ShardedOptimizer final : public TapeHooks {
 public:
  // A bucket ends with the parameter by which it holds at least half of all floats that were left, and 4 MiB: few
  // collectives have few starts, and the last one, which overlaps with nothing, is small.
  static constexpr std::int64_t least_bucket = std::int64_t(1) << 20;  // floats

  // Moves the values of the trained parameters into buckets, and reduces the optimizer's state to this rank's shard.
  // `gather_in_forward`: the all-gather of updated weights begins in the next step, not at the end of the update.
  ShardedOptimizer(Communicator& ranks, Context& ctx, const std::vector<Parameter*>& parameters, Optimizer& optimizer,
                   bool gather_in_forward);
  ~ShardedOptimizer() override { ctx_.tape.set_hooks(nullptr); }
  ShardedOptimizer(const ShardedOptimizer&) = delete;
  ShardedOptimizer& operator=(const ShardedOptimizer&) = delete;

  // The memory of the trained parameters' gradients, in the order of the network: zeros at first.
  const std::vector<Tensor>& gradients() const { return gradients_; }
  // The parts of parameters that this rank updates, under the parameters' names and with their gradients.
  std::vector<Parameter*>& shard() { return shard_; }

  // In this order, on all ranks. `reduce_in_backward`: the backward pass may begin collectives; all ranks must then run
  // the same layers.
  void begin_step(bool reduce_in_backward);
  void reduce_gradients();
  void end_update();

  // After a captured step was replayed, which ran the collectives of all three.
  void replayed() { must_gather_ = gather_in_forward_; }
  // All-gathers the weights if the latest update has not yet. On all ranks, before weights are read between steps.
  void all_gather_weights();
  // The optimizer's state of all shards, in the layout of a single process. Call on all ranks.
  std::vector<std::pair<std::string, Tensor>> whole_state();

  void before_read(const Variable& parameter) override;
  void gradient_complete(const Variable& variable) override;

 private:
  struct Slice {
    Parameter* parameter;
    std::int64_t offset;        // in the bucket
    std::int64_t first, count;  // its elements in this rank's shard; count 0: none
  };
  struct Bucket {
    std::vector<Slice> slices;
    std::int64_t floats = 0;
    Tensor weights, gradients;
    std::size_t incomplete = 0;                // gradients in this step
    std::shared_ptr<Event> reduced, gathered;  // null: the stream has waited for it
  };

  void lay_out(const std::vector<Parameter*>& parameters);
  void find_shard(Bucket& bucket) const;
  void move_into(Bucket& bucket);
  void keep_state_of_shard() const;
  void begin_next_reduce();
  void begin_all_gather();
  void wait_for_weights();

  Communicator& ranks_;
  Context& ctx_;
  Stream& stream_;
  Optimizer& optimizer_;
  bool gather_in_forward_, must_gather_ = false;
  bool reduce_in_backward_ = false;
  std::vector<Bucket> buckets_;
  std::map<const Tensor*, Bucket*> bucket_of_;  // by a parameter's value
  std::size_t begun_ = 0;                       // buckets whose reduce-scatter has begun in this step
  std::vector<Tensor> gradients_;
  std::deque<Parameter> parts_;
  std::vector<Parameter*> shard_;
};

}  // namespace twiddle
