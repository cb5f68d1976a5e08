#pragma once
#include <memory>

#include "framework/config/params.h"
#include "framework/optimizers/optimizer.h"

namespace twiddle {

// The optimizer that the section `train` of a config names, with nothing in its memory yet. Null where there is none of
// that name, which is then in the diagnostics.
std::unique_ptr<Optimizer> read_optimizer(Params& train);

}  // namespace twiddle
