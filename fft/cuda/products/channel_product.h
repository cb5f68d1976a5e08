#pragma once
#include <memory>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of depthwise convolutions, of interleaved spectra: one number by another, or a sum of such over the batch.
std::unique_ptr<FrequencyProduct> make_channel_product();

}  // namespace twiddle
