#pragma once
#include "models/training/trainer.h"

namespace twiddle {

// Fits what a checkpoint tells to the run that goes on from it. Limits of the run that began are limits of the one that
// goes on; an Error of kind config where what is asked for now cannot be a continuation.
void take_up(RunState& state, const Config& config, Trainer::Options& options);

}  // namespace twiddle
