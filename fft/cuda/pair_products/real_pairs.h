#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of real spectra by the device's tensor cores, in the fp32 class; none where it has none for halves.
std::vector<std::unique_ptr<FrequencyProduct>> make_real_pair_products(Device device);

}  // namespace twiddle
