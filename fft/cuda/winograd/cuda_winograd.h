#pragma once
#include <memory>
#include <vector>

#include "fft/spectral_transform.h"

namespace twiddle {

// F(4x4, 3x3) and F(2x2, 3x3) on a GPU.
std::vector<std::unique_ptr<SpectralTransform>> make_cuda_winograd();

}  // namespace twiddle
