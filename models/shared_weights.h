#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/optimizer.h"
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
class SharedWeights {
 public:
  static constexpr std::int64_t bucket_floats = std::int64_t(1)
                                                << 22;  // a bucket ends with the parameter that fills it

  // Moves the values of the trained parameters into buckets. Of what state the optimizer has, of all of them, this
  // rank's share stays.
  SharedWeights(Communicator& ranks, Stream& stream, const std::vector<Parameter*>& parameters, Optimizer& optimizer);

  // The memory of the trained parameters' gradients, in the order of the network: zeros at first.
  const std::vector<Tensor>& gradients() const { return gradients_; }
  void sum_gradients(Stream& stream);
  // What this rank updates behind that: pieces of parameters, under their names and with their gradients.
  std::vector<Parameter*>& share() { return share_; }
  void hand_out(Stream& stream);  // the weights that were updated, to all

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
  };

  void lay_out(const std::vector<Parameter*>& parameters);
  void find_share(Bucket& bucket) const;
  void move_in(Stream& stream, Bucket& bucket);
  void keep_state_of_share(Stream& stream, Optimizer& optimizer) const;

  Communicator& ranks_;
  std::vector<Bucket> buckets_;
  std::vector<Tensor> gradients_;
  std::deque<Parameter> pieces_;
  std::vector<Parameter*> share_;
};

}  // namespace twiddle
