#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/augmentation/augment.h"
#include "models/config/config.h"
#include "models/loss.h"

namespace twiddle {

// Valid settings that usually ruin a run of so many updates (0: not known): what they do, and what to set instead.
std::vector<std::string> run_warnings(const Config& config, const Loss& loss, const Augment& augment,
                                      std::int64_t updates);

}  // namespace twiddle
