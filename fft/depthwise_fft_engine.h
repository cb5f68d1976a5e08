#pragma once
#include <memory>

#include "fft/frequency_buffers.h"
#include "framework/convolution.h"

namespace twiddle {

// Depthwise convolutions (groups = channels = filters) of stride 1 on a GPU by Fourier transforms of full planes. One
// kernel computes y from x for each plane. Its plans are transform sizes, each in two variants. One runs alone. The
// other shares spectra with other passes through `buffers`, if the spectra that backward_weight needs fit `limit`
// bytes. Null in a build without CUDA.
std::unique_ptr<ConvEngine> make_depthwise_fft_engine(Device device, std::shared_ptr<FrequencyBuffers> buffers,
                                                      std::size_t limit);

}  // namespace twiddle
