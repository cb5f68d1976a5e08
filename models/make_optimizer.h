#pragma once
#include <memory>

#include "framework/optimizer.h"
#include "models/config.h"

namespace twiddle {

// The optimizer that the config names, with nothing in its memory yet.
std::unique_ptr<Optimizer> make_optimizer(const Config& config);

}  // namespace twiddle
