#pragma once
#include <algorithm>
#include <vector>

namespace twiddle {

// The fraction of an epoch's time so far that each rank spent waiting for images. One slow reader stalls all ranks,
// even those whose images are ready.
struct DataWait {
  std::vector<double> shares;  // of 1, by rank; empty: not known

  double largest() const { return shares.empty() ? 0 : *longest(); }
  int rank_of_largest() const { return shares.empty() ? 0 : static_cast<int>(longest() - shares.begin()); }
  bool is_of_several() const { return shares.size() > 1; }

 private:
  std::vector<double>::const_iterator longest() const { return std::max_element(shares.begin(), shares.end()); }
};

}  // namespace twiddle
