#pragma once
#include <cstdint>
#include <memory>

#include "framework/context.h"
#include "framework/ranks/communicator.h"
#include "models/config/experiment.h"
#include "models/memory_plan.h"
#include "models/training/train_step.h"
#include "models/training/training_data.h"

namespace twiddle {

// What a Trainer makes of an experiment before its first step.

// `state`: of the run that is resumed, or a new one.
StepOptions step_options(const Config& config, const RunState& state, WeightAverage* average, bool capture,
                         Communicator& ranks);

std::shared_ptr<Communicator> given_or_one(std::shared_ptr<Communicator> ranks);  // null: of a process by itself

// A rank's part of each full batch; an Error of kind config where the ranks cannot share batches.
std::int64_t share_of_batch(const Experiment& experiment, const Communicator& ranks);

// The memory that a run of the experiment needs in addition to its model, per rank.
TrainingSize training_size(const Experiment& experiment, const Communicator& ranks);

// Throws if the plan does not fit, before an image is read or made. The datasets join the plan once they are open.
TrainingData open_if_memory_suffices(const Experiment& experiment, const Context& ctx, Communicator& ranks,
                                     MemoryPlan& plan);

}  // namespace twiddle
