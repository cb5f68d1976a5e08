#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "data/loader.h"
#include "framework/ranks/communicator.h"
#include "models/evaluation/evaluator.h"

namespace twiddle {

// A batch, and what a net gives for it.
struct EvaluatedBatch {
  Batch batch;
  Tensor output;
};

struct BatchResult {
  std::int64_t images = 0;
  double loss = 0;  // the mean
};

// Scores the next batch, whose outputs next() returns. If ranks share it, each scores its own rows and counts the
// scored rows of all ranks, in the order of the batch. Nothing: it was the last batch, or next() of one rank gave
// false. An Error on one rank is one on all. Batches of which no rank has a row are left out.
std::optional<BatchResult> evaluate_next(Communicator* ranks, Evaluator& evaluator,
                                         const std::function<bool(EvaluatedBatch&)>& next,
                                         const std::function<double(const EvaluatedBatch&)>& loss);

}  // namespace twiddle
