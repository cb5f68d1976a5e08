#pragma once
#include <string>

#include "data/formats/dataset.h"
#include "framework/context.h"
#include "layers/sequential.h"

namespace twiddle {

// Returns a short string that differs if the contents differ, so that ranks can compare their contents.
std::string fingerprint(Context& ctx, const Sequential& net);  // of all that a checkpoint's model.safetensors holds
// Covers the number of images, the classes, and a few images with their targets: reading all images would take as long
// as an epoch.
std::string fingerprint(const Dataset& data);

}  // namespace twiddle
