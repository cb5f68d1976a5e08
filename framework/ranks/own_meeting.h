#pragma once
#include "framework/ranks/communicator.h"
#include "framework/ranks/rank_lines.h"

namespace twiddle {

// For ranks that something else has joined: connections of their own, at a place that rank 0 chooses and tells the
// others by gather(). An Error of kind device on all of them where they do not all come within these seconds.
RankLines meet_at_own_place(Communicator& ranks, double patience);

}  // namespace twiddle
