#pragma once
#include "framework/ranks/communicator.h"
#include "framework/ranks/rank_lines.h"

namespace twiddle {

// Opens separate connections for ranks that are already joined, at an address that rank 0 selects and sends by
// gather(). Throws an Error of kind device on all ranks if not all of them connect within `patience` seconds.
RankLines tcp_rendezvous(Communicator& ranks, double patience);

}  // namespace twiddle
