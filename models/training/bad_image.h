#pragma once
#include <string>

#include "data/loader.h"

namespace twiddle {

// The first image of a batch of the dataset, or target that is an image, with a value that is not finite: "cats/1.png:
// the value at channel 0, row 3, column 5 is nan". Empty: there is none. Waits for the stream.
std::string first_bad_image(Stream& stream, const Batch& batch, const Dataset& dataset);

// Advice for that case: a decoded file has only finite pixels, so the augmentation or normalization is at fault.
constexpr const char* bad_image_advice = "see 'normalize' and the augmentation steps under 'data'";

}  // namespace twiddle
