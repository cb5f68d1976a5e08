#pragma once
#include <algorithm>
#include <cstdint>

namespace twiddle {

// The progress of an epoch, counted in images of its order. A run resumed with another batch size therefore continues
// at the right image and at the right point of the learning rate schedule.
struct EpochSpan {
  std::int64_t images = 0;                 // that a whole epoch has
  std::int64_t batch_size = 1, steps = 0;  // of a whole epoch; fewer steps than the images make where it is limited
  bool same_batch = false;                 // every step takes the first batch, short as it may be

  std::int64_t end() const { return same_batch ? steps * batch_size : std::min(images, steps * batch_size); }
  bool over(std::int64_t position) const { return position >= end(); }
  // Batches of this size up to there: a last one that is short counts as one.
  std::int64_t batches(std::int64_t position) const { return (position + batch_size - 1) / batch_size; }
  double share(std::int64_t position) const {  // from 0 to 1, as batches count
    return over(position) ? 1 : static_cast<double>(position) / static_cast<double>(steps * batch_size);
  }
};

}  // namespace twiddle
