#include "apps/bench/batched_fft.h"

#include <vector>

#include "apps/bench/cuda/batched_kernels.h"
#include "fft/cuda/device/tuned_on_h200.h"
#include "fft/cuda/planes/fbfft_kernels.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle {

namespace {

using small_fft::BatchKernels;
using small_fft::ColumnKernels;
using small_fft::Complex;
using small_fft::PlaneKernels;

void require_aligned(const void* planes, const void* spectra) {
  const auto aligned = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0; };
  require(aligned(planes), "the planes of a batched transform are not aligned to 16 bytes");
  require(aligned(spectra), "the spectra of a batched transform are not aligned to 16 bytes");
}

// Casts real numbers to the pairs that the kernels load and store.
const Complex* in_pairs(const float* planes) {
  return reinterpret_cast<const Complex*>(planes);
}
Complex* in_pairs(float* planes) {
  return reinterpret_cast<Complex*>(planes);
}

// One launch between planes and [row or plane][bins], or between rows and [bin][row].
class OneLaunch final : public BatchedFft {
 public:
  OneLaunch(Stream& stream, const FftBatch& batch, const BatchKernels& kernels)
      : BatchedFft(batch), stream_(stream), kernels_(kernels) {}

  void forward(const float* planes, void* spectra) override {
    require_aligned(planes, spectra);
    kernels_.forward(stream_, {batch().count, pitch(), in_pairs(planes), static_cast<Complex*>(spectra)});
  }
  void inverse(const void* spectra, float* planes) override {
    require_aligned(planes, spectra);
    kernels_.inverse(stream_, {batch().count, pitch(), static_cast<const Complex*>(spectra), in_pairs(planes)});
  }

 private:
  std::int64_t pitch() const { return batch().layout == BinLayout::frequency_major ? batch().count : 0; }
  Stream& stream_;
  BatchKernels kernels_;
};

// The kernels of the engine fbfft (planes/), for contiguous planes.
class PackedPlanes final : public BatchedFft {
 public:
  PackedPlanes(Stream& stream, const FftBatch& batch, const PlaneKernels& kernels)
      : BatchedFft(batch), stream_(stream), kernels_(kernels), planes_(planes_of(batch)) {}

  void forward(const float* planes, void* spectra) override {
    require_aligned(planes, spectra);
    kernels_.forward(stream_, small_fft::forward_arguments(planes_, planes, spectra));
  }
  void inverse(const void* spectra, float* planes) override {
    require_aligned(planes, spectra);
    small_fft::for_each_colour(planes_, spectra, planes, {}, [&](const small_fft::InverseArguments& arguments) {
      kernels_.inverse(stream_, arguments);
    });
  }

 private:
  Stream& stream_;
  PlaneKernels kernels_;
  Planes planes_;
};

// Two launches: rows to [row's bin][plane][row] in a separate buffer, then columns from there.
class TwoSteps final : public BatchedFft {
 public:
  TwoSteps(Stream& stream, const FftBatch& batch, const BatchKernels& rows, const ColumnKernels& columns)
      : BatchedFft(batch),
        stream_(stream),
        rows_(rows),
        columns_(columns),
        row_bins_(stream.allocate(spectrum_bytes(batch))) {}

  void forward(const float* planes, void* spectra) override {
    require_aligned(planes, spectra);
    rows_.forward(stream_, {rows(), rows(), in_pairs(planes), row_bins()});
    columns_.forward(stream_, small_fft::column_arguments(batch(), row_bins(), static_cast<Complex*>(spectra)));
  }
  void inverse(const void* spectra, float* planes) override {
    require_aligned(planes, spectra);
    auto* const numbers = static_cast<Complex*>(const_cast<void*>(spectra));  // an inverse only reads the spectra
    columns_.inverse(stream_, small_fft::column_arguments(batch(), row_bins(), numbers));
    rows_.inverse(stream_, {rows(), rows(), row_bins(), in_pairs(planes)});
  }

 private:
  std::int64_t rows() const { return batch().count * batch().height; }
  Complex* row_bins() const { return static_cast<Complex*>(row_bins_.get()); }

  Stream& stream_;
  BatchKernels rows_;
  ColumnKernels columns_;
  std::shared_ptr<void> row_bins_;
};

// Returns the maximum shared memory per block.
std::size_t shared_bytes(const Device& device) {
  int bytes = 0;
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  return static_cast<std::size_t>(bytes);
}

// Returns the kernels that fit the device's shared memory. For each size, those for small batches come first.
std::vector<BatchKernels> all_kernels(const Device& device) {
  std::vector<BatchKernels> all;
  small_fft::add_long_rows(all);
  small_fft::add_short_rows(all);
  small_fft::add_shared_planes(all);
  small_fft::add_group_of_plane_major<0>(all);
  small_fft::add_group_of_plane_major<1>(all);
  small_fft::add_group_of_plane_major<2>(all);
  small_fft::add_group_of_plane_major<3>(all);
  std::erase_if(all, [most = shared_bytes(device)](const BatchKernels& each) { return each.shared_bytes > most; });
  return all;
}

// Scales `count` to an H200 with the same number of rows or planes per multiprocessor. The limits for the fastest
// kernel were measured on an H200.
std::int64_t count_on_an_h200(std::int64_t count, const Device& device) {
  const std::int64_t here = multiprocessors(device);
  return (count * small_fft::multiprocessors_of_an_h200 + here - 1) / here;
}

// Returns the first entry of that size that supports `count`, else the last one; null: none of that size.
const BatchKernels* find(const std::vector<BatchKernels>& all, int height, int width, std::int64_t count, bool by_bin) {
  const BatchKernels* found = nullptr;
  for (const BatchKernels& each : all) {
    if (each.height != height || each.width != width) continue;
    found = &each;
    if (count <= (by_bin ? each.most_by_bin : each.most)) break;
  }
  return found;
}

}  // namespace

std::unique_ptr<BatchedFft> make_batched_fft(Stream& stream, const FftBatch& batch) {
  if (stream.device().kind != Device::Kind::cuda)
    throw Error(ErrorKind::device, "batched transforms run on a GPU, not on " + to_string(stream.device()));
  require(batch.count > 0, "a batched transform takes one plane or more, not ", batch.count);
  const int height = batch.height, width = batch.width;
  const std::vector<BatchKernels> all = all_kernels(stream.device());
  const std::int64_t count = count_on_an_h200(batch.count, stream.device());
  if (batch.layout == BinLayout::packed) {
    for (const PlaneKernels& kernels : small_fft::all_planes())
      if (kernels.height == height && kernels.width == width)
        return std::make_unique<PackedPlanes>(stream, batch, kernels);
  } else {
    const bool in_one = batch.layout == BinLayout::plane_major || height == 1;
    const bool by_bin = batch.layout == BinLayout::frequency_major;
    const BatchKernels* const one = in_one ? find(all, height, width, count, by_bin) : nullptr;
    for (const ColumnKernels& columns : small_fft::column_kernels())
      if (columns.points == height && height == width && (one == nullptr || count <= columns.few))
        return std::make_unique<TwoSteps>(stream, batch, *find(all, 1, width, count * height, true), columns);
    if (one != nullptr) return std::make_unique<OneLaunch>(stream, batch, *one);
  }
  throw Error(ErrorKind::config, join("there is no batched transform of ", to_string(batch),
                                      ": apps/bench/batched_fft.h says which sizes have which layouts"));
}

}  // namespace twiddle
