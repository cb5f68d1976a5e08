#include "fft/cuda/cufft/cufft_transform.h"

#include "fft/cuda/cufft/cufft_grids.h"
#include "fft/cuda/cufft/pad_and_crop.h"
#include "fft/cuda/cufft/transpose.h"

namespace twiddle {

namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

std::size_t plane_bytes(const FrequencyGrid& grid) {  // padded, or as a spectrum
  return static_cast<std::size_t>(grid.bins()) * sizeof(cufftComplex);
}

std::int64_t count_of(const Planes& planes) {
  return planes.rows * planes.columns;
}

FourierBatch batch_of(const Planes& planes) {
  return {planes.grid.height, planes.grid.width, count_of(planes)};
}

char* behind(void* memory, std::size_t bytes) {
  return static_cast<char*>(memory) + bytes;
}

}  // namespace

std::vector<FrequencyGrid> CufftTransform::grids(const ConvProblem& problem) const {
  return cufft_grids(problem);
}

std::size_t CufftTransform::spectrum_bytes(const Planes& planes) const {
  return static_cast<std::size_t>(count_of(planes)) * plane_bytes(planes.grid);
}

// Scratch: the padded planes, which are transformed in place, then cuFFT's work area.
WorkArea CufftTransform::work_area(const Planes& planes, void* scratch) const {
  return {behind(scratch, aligned(spectrum_bytes(planes))), plans_.work_bytes(batch_of(planes))};
}

std::size_t CufftTransform::scratch_bytes(const Planes& planes) const {
  return aligned(spectrum_bytes(planes)) + plans_.work_bytes(batch_of(planes));
}

void CufftTransform::forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum,
                             void* scratch) {
  const std::int64_t count = count_of(planes), bins = planes.grid.bins();
  auto* const planar = static_cast<cufftComplex*>(scratch);
  auto* const real = static_cast<float*>(scratch);
  Stream& stream = *ctx.stream;
  {
    const StageRange stage(ctx.profiler, stream, "pad");
    pad_planes(stream, planes, 0, count, source.values, real);
  }
  {
    const StageRange stage(ctx.profiler, stream, "fft");
    plans_.forward(stream, batch_of(planes), real, planar, work_area(planes, scratch));
  }
  const StageRange stage(ctx.profiler, stream, "transpose");
  transpose_complex(stream, count, bins, planar, static_cast<cufftComplex*>(spectrum));
}

void CufftTransform::inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target,
                             const PlaneEpilogue& epilogue, void* scratch) {
  const std::int64_t count = count_of(planes), bins = planes.grid.bins();
  auto* const planar = static_cast<cufftComplex*>(scratch);
  auto* const real = static_cast<float*>(scratch);
  Stream& stream = *ctx.stream;
  {
    const StageRange stage(ctx.profiler, stream, "transpose");
    transpose_complex(stream, bins, count, static_cast<const cufftComplex*>(spectrum), planar);
  }
  {
    const StageRange stage(ctx.profiler, stream, "ifft");
    plans_.inverse(stream, batch_of(planes), planar, real, work_area(planes, scratch));
  }
  const StageRange stage(ctx.profiler, stream, "crop");
  crop_planes(stream, planes, 0, count, real, target, epilogue);
}

}  // namespace twiddle
