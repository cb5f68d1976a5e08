#pragma once
#include <vector>

#include "framework/ranks/launch.h"
#include "framework/ranks/socket.h"

namespace twiddle {

// The connections of a rank: rank 0 has one to each other rank, in their order, and each other rank has one, to rank 0.
using RankLine = std::vector<Socket>;

// Three of them, so that none waits for what goes over another.
struct RankLines {
  RankLine texts;  // of the training
  RankLine last;   // of ranks that end
  RankLine life;   // tells that a rank is there
};

// Waits until all ranks of the launch have come to its meeting place. Whoever does not say its token is sent away. An
// Error of kind device where that takes more than these seconds, or where one comes with the token whose number or size
// does not fit.
RankLines meet_ranks(const Launch& launch, double patience);

}  // namespace twiddle
