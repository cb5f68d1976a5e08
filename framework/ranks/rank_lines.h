#pragma once
#include <vector>

#include "framework/ranks/launch.h"
#include "framework/ranks/socket.h"

namespace twiddle {

// The connections of a rank: rank 0 has one to each other rank, in their order, and each other rank has one, to rank 0.
using RankLine = std::vector<Socket>;

// Three of them, so that none waits for what goes over another.
struct RankLines {
  RankLine texts;  // for gathers during training
  RankLine last;   // for gathers on exit
  RankLine life;   // for heartbeats
};

// Waits until all ranks of the launch have connected. Connections without its token are closed. Throws an Error of kind
// device after `patience` seconds, or if a rank with the token has a conflicting rank or size.
RankLines connect_ranks(const Launch& launch, double patience);

}  // namespace twiddle
