#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/augmentation/augment.h"
#include "models/config/config.h"
#include "models/loss.h"

namespace twiddle {

// Returns warnings for valid settings that usually ruin a run of `updates` updates (0: unknown): the effect and what to
// set instead.
std::vector<std::string> run_warnings(const Config& config, const Loss& loss, const Augment& augment,
                                      std::int64_t updates);

}  // namespace twiddle
