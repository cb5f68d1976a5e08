#include "apps/bench/batched_fft.h"
#include "framework/error.h"

namespace twiddle {

std::unique_ptr<BatchedFft> make_batched_fft(Stream&, const FftBatch&) {
  throw Error(ErrorKind::device, "batched transforms run on a GPU, and this build has no CUDA side");
}

std::unique_ptr<BatchedFft> make_cufft_batch(Stream&, const FftBatch&) {
  throw Error(ErrorKind::device, "cuFFT runs on a GPU, and this build has no CUDA side");
}

}  // namespace twiddle
