#pragma once
#include <nlohmann/json_fwd.hpp>

#include "models/evaluate.h"

namespace twiddle {

// An evaluation as `eval --json` and a run's best.json tell it: images, `undefined`, and the metrics by name. Of one
// label an image, `confusion` as a list of [actual, predicted, images] without the pairs that no image fell into,
// `outside` with a number for each actual class, and `mistakes`. Of several, `labels` as a list of [images, average
// precision], and the `worst` images. Of images made of images, the first are `restored`, each with its psnr.
nlohmann::json to_json(const EvalResult& result);

// The inverse. Throws nlohmann's exceptions where a key is missing or of another type.
EvalResult evaluation_from_json(const nlohmann::json& json);

}  // namespace twiddle
