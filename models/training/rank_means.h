#pragma once
#include <vector>

#include "framework/ranks/communicator.h"
#include "framework/tensor.h"

namespace twiddle {

// Reduces small tensors over all ranks together: in one all-reduce and few launches.
class RankMeans {
 public:
  RankMeans(Communicator& ranks, Stream& stream);
  // Each of `means` becomes the mean of those of all ranks, weighted by `share`, each rank's fraction of the batch, one
  // number on the device; the fractions sum to 1. Each of `sums` becomes the sum.
  void take(Stream& stream, const Tensor& share, std::vector<Tensor> means, const std::vector<Tensor>& sums);

 private:
  Communicator& ranks_;
  Tensor one_, bucket_;
};

}  // namespace twiddle
