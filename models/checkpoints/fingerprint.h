#pragma once
#include <string>

#include "data/formats/dataset.h"
#include "framework/context.h"
#include "layers/sequential.h"

namespace twiddle {

// A short text that differs where the contents do, so that ranks can tell whether they have the same.
std::string fingerprint(Context& ctx, const Sequential& net);  // of all that a checkpoint's model.safetensors holds
// Of how many images there are and of what classes, and of a few of them with their targets: reading all would take as
// long as an epoch.
std::string fingerprint(const Dataset& data);

}  // namespace twiddle
