#include "fft/batched_fft.h"

#include <algorithm>
#include <vector>

#include "fft/cuda/batch_kernels.h"
#include "fft/cuda/plane_kernels.h"
#include "framework/error.h"

namespace twiddle {

namespace {

using small_fft::BatchKernels;
using small_fft::ColumnKernels;
using small_fft::Complex;
using small_fft::PlaneKernels;

void require_aligned(const void* planes, const void* spectra) {
  const auto aligned = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % 16 == 0; };
  require(aligned(planes), "the planes of a batched transform begin at a place that 16 does not divide");
  require(aligned(spectra), "the spectra of a batched transform begin at a place that 16 does not divide");
}

// One launch, to and from [row or plane][bins], or of rows [bin][row].
class OneLaunch final : public BatchedFft {
 public:
  OneLaunch(Stream& stream, const FftBatch& batch, const BatchKernels& kernels)
      : BatchedFft(batch), stream_(stream), kernels_(kernels) {}

  void forward(const float* planes, void* spectra) override {
    require_aligned(planes, spectra);
    kernels_.forward(stream_, {batch().count, pitch(), planes, static_cast<Complex*>(spectra)});
  }
  void inverse(const void* spectra, float* planes) override {
    require_aligned(planes, spectra);
    kernels_.inverse(stream_, {batch().count, pitch(), static_cast<const Complex*>(spectra), planes});
  }

 private:
  std::int64_t pitch() const { return batch().layout == BinLayout::frequency_major ? batch().count : 0; }
  Stream& stream_;
  BatchKernels kernels_;
};

// The transforms of the engine fbfft, of planes that lie behind each other.
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

// Rows to bins [row's bin][plane][row] in memory of its own, then columns from there; a slice of the planes at a time.
class TwoSteps final : public BatchedFft {
 public:
  TwoSteps(Stream& stream, const FftBatch& batch, const BatchKernels& rows, const ColumnKernels& columns,
           std::size_t bytes_at_a_time)
      : BatchedFft(batch), stream_(stream), rows_(rows), columns_(columns) {
    const std::size_t plane = sizeof(Complex) * static_cast<std::size_t>(batch.height * half_row());
    constexpr std::int64_t neighbours = 16;  // whole stretches of a bin
    const auto fit = static_cast<std::int64_t>(bytes_at_a_time / plane) / neighbours * neighbours;
    slice_ = std::min(batch.count, std::max(neighbours, fit));
    bins_ = stream.allocate(plane * static_cast<std::size_t>(slice_));
  }

  void forward(const float* planes, void* spectra) override {
    require_aligned(planes, spectra);
    for_each_slice([&](std::int64_t first, std::int64_t count) {
      const std::int64_t rows = count * batch().height;
      rows_.forward(stream_, {rows, rows, planes + first * plane_size(), bins()});
      columns_.forward(stream_, columns(static_cast<Complex*>(spectra), first, count));
    });
  }
  void inverse(const void* spectra, float* planes) override {
    require_aligned(planes, spectra);
    auto* const numbers = static_cast<Complex*>(const_cast<void*>(spectra));  // an inverse only reads them
    for_each_slice([&](std::int64_t first, std::int64_t count) {
      const std::int64_t rows = count * batch().height;
      columns_.inverse(stream_, columns(numbers, first, count));
      rows_.inverse(stream_, {rows, rows, bins(), planes + first * plane_size()});
    });
  }

 private:
  std::int64_t half_row() const { return batch().width / 2 + 1; }
  std::int64_t plane_size() const { return std::int64_t(batch().height) * batch().width; }
  Complex* bins() const { return static_cast<Complex*>(bins_.get()); }

  template <class Take>
  void for_each_slice(const Take& take) {
    for (std::int64_t first = 0; first < batch().count; first += slice_)
      take(first, std::min(slice_, batch().count - first));
  }

  small_fft::ColumnArguments columns(Complex* spectra, std::int64_t first, std::int64_t count) const {
    return small_fft::column_arguments(batch(), first, count, bins(), spectra);
  }

  Stream& stream_;
  BatchKernels rows_;
  ColumnKernels columns_;
  std::int64_t slice_;
  std::shared_ptr<void> bins_;
};

std::vector<BatchKernels> all_kernels() {
  std::vector<BatchKernels> all;
  small_fft::add_short_rows(all);
  small_fft::add_long_rows(all);
  small_fft::add_small_natural_planes(all);
  small_fft::add_middle_natural_planes(all);
  small_fft::add_large_natural_planes(all);
  small_fft::add_oblong_natural_planes(all);
  return all;
}

std::vector<PlaneKernels> packed_kernels() {
  std::vector<PlaneKernels> all;
  small_fft::add_small_planes(all);
  small_fft::add_middle_planes(all);
  small_fft::add_large_planes(all);
  small_fft::add_oblong_planes(all);
  return all;
}

// The one of that size; null: none has it.
template <class Kernels>
const Kernels* find(const std::vector<Kernels>& all, int height, int width) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Kernels& each) { return each.height == height && each.width == width; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::unique_ptr<BatchedFft> make_batched_fft(Stream& stream, const FftBatch& batch, std::size_t bytes_at_a_time) {
  if (stream.device().kind != Device::Kind::cuda)
    throw Error(ErrorKind::device, "batched transforms run on a GPU, not on " + to_string(stream.device()));
  require(batch.count > 0, "a batched transform takes one plane or more, not ", batch.count);
  const std::vector<BatchKernels> all = all_kernels();
  const std::vector<PlaneKernels> packed = packed_kernels();
  if (batch.layout == BinLayout::packed) {
    if (const PlaneKernels* kernels = find(packed, batch.height, batch.width))
      return std::make_unique<PackedPlanes>(stream, batch, *kernels);
  } else if (const BatchKernels* kernels = find(all, batch.height, batch.width)) {
    if (batch.layout == BinLayout::plane_major || batch.height == 1)
      return std::make_unique<OneLaunch>(stream, batch, *kernels);
  } else if (const BatchKernels* rows = find(all, 1, batch.width); rows != nullptr && batch.width == batch.height) {
    for (const ColumnKernels& columns : small_fft::column_kernels())
      if (columns.points == batch.height)
        return std::make_unique<TwoSteps>(stream, batch, *rows, columns, bytes_at_a_time);
  }
  throw Error(ErrorKind::config, join("there is no batched transform of ", to_string(batch),
                                      ": fft/batched_fft.h says which sizes have which layouts"));
}

}  // namespace twiddle
