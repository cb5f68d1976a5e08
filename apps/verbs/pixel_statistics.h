#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "data/formats/dataset.h"

namespace twiddle {

// Wraps a dataset and computes mean and standard deviation of the decoded pixels read from it: by channel, in the units
// of `normalize` (1 = 255). Each image has the same weight, whatever its size.
class PixelStatistics : public Dataset {
 public:
  explicit PixelStatistics(const Dataset& dataset) : dataset_(dataset) {}
  std::int64_t size() const override { return dataset_.size(); }
  const std::vector<std::string>& classes() const override { return dataset_.classes(); }
  Target get(std::int64_t index, Image& image) const override;
  std::vector<std::int64_t> labels(std::int64_t index) const override { return dataset_.labels(index); }
  std::string where(std::int64_t index) const override { return dataset_.where(index); }
  std::string describe() const override { return dataset_.describe(); }

  std::vector<double> mean() const, deviation() const;

 private:
  const Dataset& dataset_;
  mutable std::mutex mutex_;
  mutable std::int64_t images_ = 0;
  mutable std::vector<double> sums_, sums_of_squares_;  // per channel, of the images' means
};

}  // namespace twiddle
