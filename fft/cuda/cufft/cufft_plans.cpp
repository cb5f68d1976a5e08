#include "fft/cuda/cufft/cufft_plans.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "framework/error.h"

namespace twiddle {

namespace {

constexpr std::size_t most_plans = 512;
// cuFFT's work areas grow in proportion to the number of planes, unless there are very few, and to query their size is
// slow. So it is queried once, for this number of planes, and scaled to any other number.
std::int64_t planes_to_estimate_by(const FourierBatch& batch) {
  constexpr std::int64_t most = 1024, most_bins = std::int64_t(1) << 26;
  const std::int64_t bins = std::int64_t(batch.height) * (batch.width / 2 + 1);
  return std::clamp<std::int64_t>(most_bins / bins, 1, most);
}

const char* meaning(cufftResult status) {
  switch (status) {
    case CUFFT_ALLOC_FAILED:
      return "out of memory";
    case CUFFT_INVALID_VALUE:
      return "invalid value";
    case CUFFT_INTERNAL_ERROR:
      return "internal error";
    case CUFFT_EXEC_FAILED:
      return "execution failed";
    case CUFFT_SETUP_FAILED:
      return "library cannot be set up";
    case CUFFT_INVALID_SIZE:
      return "invalid size";
    case CUFFT_NOT_SUPPORTED:
      return "not supported";
    default:
      return "see cufft.h";
  }
}

// The arguments of cufftMakePlanMany64 for both directions. Planes of one row have their rows transformed alone.
struct Layout {
  int first;                            // of the dimensions
  long long size[2], real[2], bins[2];  // a plane, and the arrays that it is embedded in
  long long real_distance, bin_distance;

  explicit Layout(const FourierBatch& batch)
      : first(batch.height == 1 ? 1 : 0),
        size{batch.height, batch.width},
        real{batch.height, 2 * (batch.width / 2 + 1)},
        bins{batch.height, batch.width / 2 + 1},
        real_distance(real[0] * real[1]),
        bin_distance(bins[0] * bins[1]) {}
};

using MakePlan = decltype(&cufftMakePlanMany64);

// Returns the size of the plan's work area. `make` makes the plan, or only computes this size.
std::size_t describe(MakePlan make, cufftHandle plan, const FourierBatch& batch, bool inverse) {
  Layout layout(batch);
  const int first = layout.first, dimensions = 2 - first;
  long long *const size = layout.size + first, *const real = layout.real + first, *const bins = layout.bins + first;
  std::size_t work = 0;
  if (inverse)
    check(make(plan, dimensions, size, bins, 1, layout.bin_distance, real, 1, layout.real_distance, CUFFT_C2R,
               batch.count, &work));
  else
    check(make(plan, dimensions, size, real, 1, layout.real_distance, bins, 1, layout.bin_distance, CUFFT_R2C,
               batch.count, &work));
  return work;
}

}  // namespace

void check(cufftResult status, const std::source_location& where) {
  if (status == CUFFT_SUCCESS) return;
  throw Error(ErrorKind::device, join(std::filesystem::path(where.file_name()).filename().string(), ":", where.line(),
                                      ": cuFFT: error ", static_cast<int>(status), ", ", meaning(status)));
}

std::size_t CufftPlans::work_bytes(const FourierBatch& batch) {
  FourierBatch sample = batch;
  sample.count = planes_to_estimate_by(batch);
  auto known = work_bytes_.find(sample);
  if (known == work_bytes_.end()) {
    std::size_t most = 0;
    for (const bool inverse : {false, true}) {
      Handle<cufftHandle, cufftDestroy> plan;
      check(cufftCreate(plan.put()));
      check(cufftSetAutoAllocation(plan.get(), 0));
      most = std::max(most, describe(cufftGetSizeMany64, plan.get(), sample, inverse));
    }
    known = work_bytes_.emplace(sample, most).first;
  }
  // Planes of odd width are transformed in pairs: an odd number of them takes the memory of one more. None of 3,624
  // plans of 2 to 256 points needed more than this estimate.
  constexpr std::size_t constant_part = 64 << 10;
  const std::size_t count = static_cast<std::size_t>(batch.count) + 1, sampled = static_cast<std::size_t>(sample.count);
  return known->second == 0 ? 0 : (known->second * count + sampled - 1) / sampled + constant_part;
}

void CufftPlans::forward(Stream& stream, const FourierBatch& batch, float* real, cufftComplex* spectra,
                         const WorkArea& work) {
  run(stream, {batch, false}, work, [=](cufftHandle plan) { check(cufftExecR2C(plan, real, spectra)); });
}

void CufftPlans::inverse(Stream& stream, const FourierBatch& batch, cufftComplex* spectra, float* real,
                         const WorkArea& work) {
  run(stream, {batch, true}, work, [=](cufftHandle plan) { check(cufftExecC2R(plan, spectra, real)); });
}

template <class Execute>
void CufftPlans::run(Stream& stream, const Key& key, const WorkArea& work, const Execute& execute) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  Plan& taken = plan(key);
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(native, &capture));
  taken.captured = taken.captured || capture != cudaStreamCaptureStatusNone;
  taken.last_use = ++uses_;
  std::shared_ptr<void> more;  // where the estimate was too low
  if (taken.work_bytes > work.bytes) more = stream.allocate(taken.work_bytes);
  // cuFFT would report an earlier error of another library as its own. Our launches are checked where they are made, so
  // that nothing is lost here.
  static_cast<void>(cudaGetLastError());
  check(cufftSetStream(taken.handle.get(), native));
  // A work area of no bytes is not passed on: if it starts at the end of an allocation, cuFFT fails occasionally.
  if (taken.work_bytes > 0) check(cufftSetWorkArea(taken.handle.get(), more ? more.get() : work.memory));
  try {
    execute(taken.handle.get());
  } catch (const Error& error) {
    const FourierBatch& batch = key.batch;
    throw Error(ErrorKind::device, join(error.what(), " (", cudaGetErrorString(cudaGetLastError()),
                                        "): ", key.inverse ? "C2R" : "R2C", " of ", batch.count, " planes of ",
                                        batch.height, "x", batch.width, ", work area ", taken.work_bytes, " bytes"));
  }
}

CufftPlans::Plan& CufftPlans::plan(const Key& key) {
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;
  if (plans_.size() >= most_plans) {
    const auto age = [](const auto& entry) { return std::pair{entry.second.captured, entry.second.last_use}; };
    const auto oldest =
        std::min_element(plans_.begin(), plans_.end(), [&](const auto& a, const auto& b) { return age(a) < age(b); });
    if (!oldest->second.captured) plans_.erase(oldest);
  }
  Plan made;
  check(cufftCreate(made.handle.put()));
  check(cufftSetAutoAllocation(made.handle.get(), 0));
  made.work_bytes = describe(cufftMakePlanMany64, made.handle.get(), key.batch, key.inverse);
  return plans_.emplace(key, std::move(made)).first->second;
}

}  // namespace twiddle
