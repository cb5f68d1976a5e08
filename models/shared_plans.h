#pragma once
#include "framework/ranks/communicator.h"
#include "models/builder.h"

namespace twiddle {

// Before ranks train: where convolution plans are chosen by the clock, rank 0 measures, for the batch that each has,
// and the others take its choices. So all run the same kernels, none waits in a step for one that measures, and nobody
// measures while others make the machine busy.
void share_plans(Context& ctx, const Model& model, std::int64_t batch, Communicator& ranks);

}  // namespace twiddle
