#pragma once
#include <nlohmann/json_fwd.hpp>

#include "models/evaluation/evaluate.h"

namespace twiddle {

// Returns an evaluation as in `eval --json` and a run's best.json: images, `undefined`, and the metrics by name. With
// one label per image also `confusion`, a list of [actual, predicted, images] without empty pairs, `outside` with a
// number for each actual class, and `mistakes`. With several labels `labels`, a list of [images, average precision],
// and the `worst` images. With target images `restored`, the first images, each with its psnr.
nlohmann::json to_json(const EvalResult& result);

// What an evaluation was made of, as far as its numbers must agree with it.
struct EvaluatedSet {
  TargetKind target = TargetKind::label;
  std::int64_t images = 0, classes = 0;
  std::int64_t outputs = 0;  // of the network
  bool may_skip = false;     // images that cannot be read are left out
};

// The inverse. The JSON may come from anyone: an Error of kind data says what in it is no evaluation of that set.
EvalResult evaluation_from_json(const nlohmann::json& json, const EvaluatedSet& set);

}  // namespace twiddle
