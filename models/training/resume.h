#pragma once
#include "models/training/trainer.h"

namespace twiddle {

// Adapts the state in a checkpoint to the run that resumes from it. Limits of the original run also apply to the
// resumed run. Throws an Error of kind config if the current config cannot continue that run. Returns a warning if the
// precision differs; empty: it is the same, or not known.
std::string resume(RunState& state, const Config& config, Trainer::Options& options);

}  // namespace twiddle
