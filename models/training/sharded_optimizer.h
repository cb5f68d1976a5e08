#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/optimizers/optimizer.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

// The trained weights of a network that ranks update together, each its share: gradients are summed to the rank whose
// share they belong to, which alone keeps the optimizer's state of it, and the new weights are handed to all. As many
// bytes travel as for a sum of all gradients to everybody, and a rank updates and keeps 1/size of what one process
// does.
//
// Weights and gradients lie in buckets, so that ranks meet a few times a step and nothing is copied for that. A bucket
// holds whole parameters, in the order in which the backward pass makes their gradients: the first is complete, and may
// be summed, long before the last; and those that the next forward pass asks for first may be handed out first.
class ShardedOptimizer {
 public:
  // A bucket ends with the parameter by which it holds at least half of all floats that were left, and 4 MiB: few sums
  // have few starts, and the last, which nothing hides, is a small one.
  static constexpr std::int64_t least_bucket = std::int64_t(1) << 20;  // floats

  // Moves the values of the trained parameters into buckets. Of what state the optimizer has, of all of them, this
  // rank's share stays.
  ShardedOptimizer(Communicator& ranks, Stream& stream, const std::vector<Parameter*>& parameters,
                   Optimizer& optimizer);

  // The memory of the trained parameters' gradients, in the order of the network: zeros at first.
  const std::vector<Tensor>& gradients() const { return gradients_; }
  // Begins, beside the stream's work, the sums of the buckets whose gradients are all there and that have not been
  // begun yet. All ranks have to call it at the same moments.
  void begin_sums(Stream& stream);
  // Begins those that are left, and has the stream wait for all.
  void sum_gradients(Stream& stream);
  void forget_begun();  // in a step that was given up: nothing waits for it
  // What this rank updates behind that: pieces of parameters, under their names and with their gradients.
  std::vector<Parameter*>& share() { return share_; }
  // The weights that were updated, to all; or beside the stream's work, those first that a forward pass begins with:
  // then the stream has to wait for a parameter before it is used, and for all before the next update.
  void hand_out(Stream& stream);
  void begin_hand_out(Stream& stream);
  void wait_for(Stream& stream, const Parameter& parameter);
  void wait_for_all(Stream& stream);

  // The optimizer's state of all shares together, as one process has it. All ranks call it at once.
  std::vector<std::pair<std::string, Tensor>> whole_state(Stream& stream, const Optimizer& optimizer);

 private:
  struct Place {
    Parameter* parameter;
    std::int64_t begin;         // in the bucket
    std::int64_t first, count;  // of its elements those in this rank's share; a count of 0: none
  };
  struct Bucket {
    std::vector<Place> places;
    std::int64_t floats = 0;
    Tensor weights, gradients;
    std::shared_ptr<Event> summed, handed_out;  // where the stream has not waited for it yet
  };

  void begin_next_sum(Stream& stream);
  void lay_out(const std::vector<Parameter*>& parameters);
  void find_share(Bucket& bucket) const;
  void move_in(Stream& stream, Bucket& bucket);
  void keep_state_of_share(Stream& stream, Optimizer& optimizer) const;

  Communicator& ranks_;
  std::vector<Bucket> buckets_;
  std::map<const Parameter*, Bucket*> bucket_of_;
  std::size_t begun_ = 0;  // buckets whose sums have been begun in this step
  std::vector<Tensor> gradients_;
  std::deque<Parameter> pieces_;
  std::vector<Parameter*> share_;
};

}  // namespace twiddle
