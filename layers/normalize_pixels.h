#pragma once
#include <string>

#include "layers/planes.h"

namespace twiddle {

// The channels of each pixel shifted and scaled to mean 0 and variance 1, then each channel by its scale and bias.
Variable normalize_pixels(Context& ctx, const std::string& name, const Variable& x, float epsilon,
                          const Variable& scale, const Variable& bias);

}  // namespace twiddle
