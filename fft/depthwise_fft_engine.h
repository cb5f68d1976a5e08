#pragma once
#include <memory>

#include "fft/frequency_buffers.h"
#include "framework/convolution.h"

namespace twiddle {

// Depthwise convolutions (as many groups as channels and filters) of stride 1 on a GPU by Fourier transforms of whole
// planes, each of which goes from x to y in one kernel. Its plans are sizes of transforms: each alone, and once more
// with passes that share spectra by `buffers`, where those that backward_weight needs fit `limit` bytes. Null in a
// build without CUDA.
std::unique_ptr<ConvEngine> make_depthwise_fft_engine(Device device, std::shared_ptr<FrequencyBuffers> buffers,
                                                      std::size_t limit);

}  // namespace twiddle
