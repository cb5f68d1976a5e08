#include "apps/bench/batched_fft.h"
#include "fft/cuda/cufft/cufft_plans.h"
#include "framework/error.h"

namespace twiddle {

namespace {

class CufftBatch final : public BatchedFft {
 public:
  CufftBatch(Stream& stream, const FftBatch& batch) : BatchedFft(batch), stream_(stream) {}

  void forward(const float* planes, void* spectra) override {
    if (forward_.handle.get() == 0) make(forward_, false);
    check(cufftExecR2C(forward_.handle.get(), const_cast<float*>(planes), static_cast<cufftComplex*>(spectra)));
  }
  void inverse(const void* spectra, float* planes) override {
    if (inverse_.handle.get() == 0) make(inverse_, true);
    auto* const numbers = static_cast<cufftComplex*>(const_cast<void*>(spectra));
    check(cufftExecC2R(inverse_.handle.get(), numbers, planes));
  }

 private:
  struct Plan {
    Handle<cufftHandle, cufftDestroy> handle;
    std::shared_ptr<void> work;
  };

  void make(Plan& plan, bool inverse) {
    const bool rows = batch().height == 1, together = batch().layout == BinLayout::plane_major;
    long long size[] = {batch().height, batch().width}, bins[] = {batch().height, batch().width / 2 + 1};
    const int first = rows ? 1 : 0, dimensions = 2 - first;
    const long long plane = size[0] * size[1], stride = together ? 1 : batch().count,
                    distance = together ? bins[0] * bins[1] : 1;
    std::size_t bytes = 0;
    const auto native = static_cast<cudaStream_t>(stream_.native());
    Plan made;
    check(cufftCreate(made.handle.put()));
    check(cufftSetAutoAllocation(made.handle.get(), 0));
    if (inverse)
      check(cufftMakePlanMany64(made.handle.get(), dimensions, size + first, bins + first, stride, distance,
                                size + first, 1, plane, CUFFT_C2R, batch().count, &bytes));
    else
      check(cufftMakePlanMany64(made.handle.get(), dimensions, size + first, size + first, 1, plane, bins + first,
                                stride, distance, CUFFT_R2C, batch().count, &bytes));
    check(cufftSetStream(made.handle.get(), native));
    if (bytes > 0) {
      made.work = stream_.allocate(bytes);
      check(cufftSetWorkArea(made.handle.get(), made.work.get()));
    }
    plan = std::move(made);
  }

  Stream& stream_;
  Plan forward_, inverse_;
};

}  // namespace

std::unique_ptr<BatchedFft> make_cufft_batch(Stream& stream, const FftBatch& batch) {
  if (stream.device().kind != Device::Kind::cuda)
    throw Error(ErrorKind::device, "cuFFT runs on a GPU, not on " + to_string(stream.device()));
  if (batch.layout == BinLayout::packed)
    throw Error(ErrorKind::config, join("cuFFT has no transform of ", to_string(batch), ": it packs no bins"));
  return std::make_unique<CufftBatch>(stream, batch);
}

}  // namespace twiddle
