#pragma once
#include <cstdint>
#include <vector>

#include "framework/ranks/communicator.h"
#include "framework/tensor.h"

namespace twiddle {

// Puts together what ranks have made of their rows of a batch. Small tensors go in buckets, so that the ranks meet a
// few times a step and not once for each tensor; large ones are summed where they lie.
class RankMeans {
 public:
  static constexpr std::int64_t bucket_floats = std::int64_t(1) << 22, large_floats = std::int64_t(1) << 20;

  RankMeans(Communicator& ranks, Stream& stream) : ranks_(ranks), stream_(stream) {}

  // Each tensor becomes the mean of those of all ranks, where this one counts by its share; the shares add up to 1. The
  // tensors of a rank whose share is 0 may hold anything.
  void take(double share, std::vector<Tensor>& tensors);

 private:
  void flush();

  Communicator& ranks_;
  Stream& stream_;
  Tensor bucket_;                // undefined until the first small tensor
  std::vector<Tensor*> packed_;  // what it holds, one behind the other
  std::int64_t used_ = 0;        // floats of it
};

}  // namespace twiddle
