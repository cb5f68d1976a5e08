#pragma once
#include <functional>
#include <optional>

#include "data/loader.h"
#include "framework/ranks/communicator.h"
#include "models/evaluation/judge.h"

namespace twiddle {

// A batch, and what a net gives for it.
struct EvaluatedBatch {
  Batch batch;
  Tensor output;
};

// The next batch with all rows, on every rank, from what next() makes of this rank's: targets, indices and output, but
// not the images. False: it was the last one, or one rank's next() gave false. An Error on one rank is one on all.
// Batches of which no rank has a row are left out.
bool next_of_ranks(Communicator& ranks, Stream& stream, EvaluatedBatch& whole,
                   const std::function<bool(EvaluatedBatch&)>& next);

struct JudgedBatch {
  std::int64_t images = 0;
  double loss = 0;  // the mean
};
// The same for images that are made of images, whose outputs are too large to send: each rank judges its own rows, and
// on every rank the judge counts those of all, in the batch's order. Only the pictures that it shows are sent.
std::optional<JudgedBatch> judge_next_of_ranks(Communicator& ranks, ImageJudge& judge,
                                               const std::function<bool(EvaluatedBatch&)>& next,
                                               const std::function<double(const EvaluatedBatch&)>& loss);

}  // namespace twiddle
