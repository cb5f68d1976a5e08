#pragma once
#include <cstdint>
#include <string>

#include "models/training/train_step.h"

namespace twiddle {

// The state of a run when a loss or an update was found to be not finite.
struct Divergence {
  double loss = 0, rate = 0;         // of the step; where that is not known, the loss is the sum over the epoch
  std::int64_t epoch = 0, step = 0;  // from 1; the CPU stops at the step itself, a GPU may have done some more
  bool exact = true;                 // the step is the bad one
  std::string last_checkpoint;       // empty: none
};

// Throws an Error of kind diverged that says when, where the first bad value is, and the usual causes. `batch` is that
// of the latest step; the weights are those of before the bad one, and finite. Ranks that share the batch each check
// their rows, and all report the findings of every rank.
[[noreturn]] void report_divergence(Context& ctx, const Sequential& net, TrainStep& step, const Batch& batch,
                                    const Dataset& dataset, const Divergence& facts, Communicator& ranks);

}  // namespace twiddle
