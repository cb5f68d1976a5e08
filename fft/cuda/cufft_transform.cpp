#include "fft/cuda/cufft_transform.h"

#include <algorithm>

#include "fft/cuda/cufft_grids.h"
#include "fft/cuda/pad_and_crop.h"

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

FourierBatch batch_of(const Planes& planes, std::int64_t count, bool frequency_major) {
  return {planes.grid.height, planes.grid.width, count, frequency_major};
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

// Pieces of one size, by the least number of them; each bin gets whole stretches of 256 bytes.
std::int64_t TurningCufftTransform::planes_at_once(const Planes& planes) const {
  constexpr std::int64_t neighbours = 32;
  const std::int64_t count = count_of(planes);
  const std::int64_t most = std::max(static_cast<std::int64_t>(piece_ / plane_bytes(planes.grid)), neighbours);
  if (piece_ == 0 || count <= most) return count;
  const std::int64_t pieces = (count + most - 1) / most, even = (count + pieces - 1) / pieces;
  return std::min((even + neighbours - 1) / neighbours * neighbours, count);
}

// The planes of a piece, transformed in place, and behind them the room that cuFFT works in.
WorkArea TurningCufftTransform::work_area(const Planes& planes, void* scratch) const {
  const std::int64_t at_once = planes_at_once(planes);
  return {behind(scratch, aligned(static_cast<std::size_t>(at_once) * plane_bytes(planes.grid))),
          plans_->work_bytes(batch_of(planes, at_once, false))};
}

std::size_t TurningCufftTransform::scratch_bytes(const Planes& planes) const {
  const std::int64_t at_once = planes_at_once(planes);
  return aligned(static_cast<std::size_t>(at_once) * plane_bytes(planes.grid)) +
         plans_->work_bytes(batch_of(planes, at_once, false));
}

void TurningCufftTransform::forward(Context& ctx, const Planes& planes, const float* source, void* spectrum,
                                    void* scratch) {
  const std::int64_t all = count_of(planes), at_once = planes_at_once(planes), bins = planes.grid.bins();
  const WorkArea work = work_area(planes, scratch);
  auto* const piece = static_cast<cufftComplex*>(scratch);
  auto* const real = static_cast<float*>(scratch);
  Stream& stream = *ctx.stream;
  for (std::int64_t first = 0; first < all; first += at_once) {
    const std::int64_t count = std::min(at_once, all - first);
    {
      const StageRange stage(ctx.profiler, stream, "pad");
      pad_planes(stream, planes, first, count, source, real);
    }
    {
      const StageRange stage(ctx.profiler, stream, "fft");
      plans_->forward(stream, batch_of(planes, count, false), real, piece, work);
    }
    const StageRange stage(ctx.profiler, stream, "transpose");
    transpose_(stream, count, bins, piece, bins, static_cast<cufftComplex*>(spectrum) + first, all);
  }
}

void TurningCufftTransform::inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target,
                                    const PlaneEpilogue& epilogue, void* scratch) {
  const std::int64_t all = count_of(planes), at_once = planes_at_once(planes), bins = planes.grid.bins();
  const WorkArea work = work_area(planes, scratch);
  auto* const piece = static_cast<cufftComplex*>(scratch);
  auto* const real = static_cast<float*>(scratch);
  Stream& stream = *ctx.stream;
  for (std::int64_t first = 0; first < all; first += at_once) {
    const std::int64_t count = std::min(at_once, all - first);
    {
      const StageRange stage(ctx.profiler, stream, "transpose");
      transpose_(stream, bins, count, static_cast<const cufftComplex*>(spectrum) + first, all, piece, bins);
    }
    {
      const StageRange stage(ctx.profiler, stream, "ifft");
      plans_->inverse(stream, batch_of(planes, count, false), piece, real, work);
    }
    const StageRange stage(ctx.profiler, stream, "crop");
    crop_planes(stream, planes, first, count, real, target, epilogue);
  }
}

// The planes, a copy of the spectrum, for an inverse transform overwrites what it reads, and the room to work in.
std::size_t StridedCufftTransform::scratch_bytes(const Planes& planes) const {
  return 2 * aligned(spectrum_bytes(planes)) + plans_->work_bytes(batch_of(planes, count_of(planes), true));
}

void StridedCufftTransform::forward(Context& ctx, const Planes& planes, const float* source, void* spectrum,
                                    void* scratch) {
  const FourierBatch batch = batch_of(planes, count_of(planes), true);
  auto* const real = static_cast<float*>(scratch);
  Stream& stream = *ctx.stream;
  {
    const StageRange stage(ctx.profiler, stream, "pad");
    pad_planes(stream, planes, 0, batch.count, source, real);
  }
  const StageRange stage(ctx.profiler, stream, "fft");
  plans_->forward(stream, batch, real, static_cast<cufftComplex*>(spectrum),
                  {behind(scratch, 2 * aligned(spectrum_bytes(planes))), plans_->work_bytes(batch)});
}

void StridedCufftTransform::inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target,
                                    const PlaneEpilogue& epilogue, void* scratch) {
  const FourierBatch batch = batch_of(planes, count_of(planes), true);
  const std::size_t bytes = aligned(spectrum_bytes(planes));
  auto* const real = static_cast<float*>(scratch);
  auto* const copy = reinterpret_cast<cufftComplex*>(behind(scratch, bytes));
  Stream& stream = *ctx.stream;
  {
    const StageRange stage(ctx.profiler, stream, "ifft");
    stream.copy(copy, spectrum, spectrum_bytes(planes));
    plans_->inverse(stream, batch, copy, real, {behind(scratch, 2 * bytes), plans_->work_bytes(batch)});
  }
  const StageRange stage(ctx.profiler, stream, "crop");
  crop_planes(stream, planes, 0, batch.count, real, target, epilogue);
}

}  // namespace twiddle
