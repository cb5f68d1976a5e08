#pragma once
#include <vector>

#include "framework/ranks/communicator.h"
#include "framework/tensor.h"

namespace twiddle {

// Puts together what is small and every rank needs at once: all of it in one sum, and in few launches.
class RankMeans {
 public:
  RankMeans(Communicator& ranks, Stream& stream);
  // Each of `means` becomes the mean of those of all ranks, where this one counts by its share, one number on the
  // device; the shares add up to 1. Each of `sums` becomes the sum.
  void take(Stream& stream, const Tensor& share, std::vector<Tensor> means, const std::vector<Tensor>& sums);

 private:
  Communicator& ranks_;
  Tensor one_, bucket_;
};

}  // namespace twiddle
