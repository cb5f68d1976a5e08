#pragma once
#include <vector>

#include "fft/cuda/depthwise/depthwise_block.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// Planes of one operand in memory, [image][channel], and where each lies in its transform.
struct DepthwisePlanes {
  PlaneWindow window;
  Divisor images{1};
  int channels = 1;
  TWIDDLE_HD std::int64_t count() const { return images.value() * channels; }
  TWIDDLE_HD std::int64_t at(int image, int channel) const {
    return (std::int64_t(image) * channels + channel) * window.height * window.width;
  }
};

// Planes go in the order [channel][image], so that blocks which run side by side use the same few spectra of kernels.
struct ConvolveArguments {
  DepthwisePlanes from, to;
  const float* source = nullptr;
  float* target = nullptr;           // null: only the spectra are computed
  const Complex* kernels = nullptr;  // spectra, one per channel
  bool conjugate = false;            // correlate with the kernel, else convolve
  const float* bias = nullptr;       // one number per channel, or null
  bool relu = false;
};

// The spectra of gradients of kernels, summed over images in `parts` parts of consecutive images: [part][channel].
struct CorrelateArguments {
  DepthwisePlanes x, y;  // of y: its gradient
  const float *source_x, *source_y;
  Complex* sums;
  int parts;
};

// From the sums of the parts to gradients of kernels.
struct InverseSumArguments {
  DepthwisePlanes to;
  const Complex* sums;
  float* target;
  int parts;
};

// The kernels of one size of transforms.
struct DepthwiseKernels {
  int size = 0;                       // of transforms: size x size points
  std::int64_t spectrum_numbers = 0;  // complex numbers of a spectrum in memory
  int correlating_planes = 0;         // planes of a block of correlate(), of which parts are a multiple
  int correlating_blocks = 0;         // and the number of these blocks per multiprocessor
  // `spectra`: of all planes of `from`, an additional output; null: not stored.
  void (*convolve)(Stream& stream, const ConvolveArguments& arguments, Complex* spectra) = nullptr;
  void (*correlate)(Stream& stream, const CorrelateArguments& arguments) = nullptr;
  void (*inverse_sum)(Stream& stream, const InverseSumArguments& arguments) = nullptr;
};

// Returns all sizes, the smallest first.
std::vector<DepthwiseKernels> all_depthwise_kernels();

constexpr int depthwise_groups = 4;
template <int Group>
void fill_group_of_depthwise(std::vector<DepthwiseKernels>& all);

}  // namespace twiddle::small_fft
