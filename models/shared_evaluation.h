#pragma once
#include <functional>

#include "data/loader.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

// A batch, and what a net gives for it.
struct EvaluatedBatch {
  Batch batch;
  Tensor output;
};

// The next batch with all rows, on every rank, from what next() makes of this rank's: images, which may be left out,
// targets, indices and output. False: it was the last one, or one rank's next() gave false. An Error on one rank is one
// on all. Batches of which no rank has a row are left out.
bool next_of_ranks(Communicator& ranks, Stream& stream, bool with_images, EvaluatedBatch& whole,
                   const std::function<bool(EvaluatedBatch&)>& next);

}  // namespace twiddle
