#pragma once
#include <vector>

#include "framework/optimizers/optimizer.h"

namespace twiddle {

// Moves each mean towards the value at its place: mean += share (value - mean), where the share is numbers.rate. With a
// share of 1 it becomes the value, whatever it was before. The guard works as in an optimizer's step.
void move_means(Stream& stream, const std::vector<Tensor>& values, std::vector<Tensor>& means,
                const StepNumbers& numbers);

}  // namespace twiddle
