#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// Returns a plan whose operands may have 16 bits: it casts them to f32, runs `plan`, and rounds the result once.
std::shared_ptr<const ConvPlan> cast_around(std::shared_ptr<const ConvPlan> plan, ConvPass pass);

}  // namespace twiddle
