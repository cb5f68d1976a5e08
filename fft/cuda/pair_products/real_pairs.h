#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of real spectra by the device's tensor cores, within the error limit of fp32; none without fp16 tensor
// cores.
std::vector<std::unique_ptr<FrequencyProduct>> make_real_pair_products(Device device);

}  // namespace twiddle
