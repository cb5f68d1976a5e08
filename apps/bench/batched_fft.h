#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fft/grid.h"
#include "framework/device.h"
#include "framework/for_each.h"

// Real Fourier transforms without a convolution: many rows or planes of one size at once, on a GPU.
//
//   Stream& stream = ...;                                       // make_stream(parse_device("cuda"))
//   const auto fft = make_batched_fft(stream, {.height = 32, .width = 32, .count = 4096});
//   const auto spectra = stream.allocate(spectrum_bytes(fft->batch()));
//   fft->forward(planes, spectra.get());                        // [4096][32][32] floats to [4096][32][17] complex
//   fft->inverse(spectra.get(), planes);                        // the same planes, within rounding
namespace twiddle {

// Layout of a batch's bins: interleaved complex numbers without gaps.
enum class BinLayout : std::uint8_t {
  plane_major,      // [plane][row][bins 0 .. width / 2 of the row]: as in cuFFT's R2C and NumPy's rfft and rfft2
  frequency_major,  // [row][bins 0 .. width / 2 of the row][plane]
  packed,           // [bin][plane], with one bin of each conjugate pair: see bin_place()
};
std::string_view to_string(BinLayout layout);  // "plane-major"

// Real rows or planes [plane][row][column] of floats without gaps.
struct FftBatch {
  int height = 1, width = 0;  // height 1: rows
  std::int64_t count = 0;
  BinLayout layout = BinLayout::plane_major;
  bool operator==(const FftBatch&) const = default;
};
std::string to_string(const FftBatch& batch);  // "4,096 planes of 32x32, packed", "512 rows of 64, plane-major"
TWIDDLE_HD std::int64_t bins_of(const FftBatch& batch);  // of one plane
std::size_t plane_bytes(const FftBatch& batch);          // of all planes
std::size_t spectrum_bytes(const FftBatch& batch);       // of all bins
Planes planes_of(const FftBatch& batch);                 // for a SpectralTransform, one tile per plane

// Returns the index of the complex number that stores the bin at (row, column <= width / 2) of a plane.
struct BinPlace {
  std::int64_t index = 0;
  bool conjugate = false;  // the bin is the conjugate of the stored number
};
TWIDDLE_HD BinPlace bin_place(const FftBatch& batch, std::int64_t plane, int row, int column);

// Transforms one batch, in order on one stream. After the first run, it can be captured on that stream. All memory must
// be 16-byte aligned.
class BatchedFft {
 public:
  explicit BatchedFft(const FftBatch& batch) : batch_(batch) {}
  virtual ~BatchedFft() = default;
  const FftBatch& batch() const { return batch_; }
  // Computes the unscaled sum of x e^(-2 pi i ...).
  virtual void forward(const float* planes, void* spectra) = 0;
  // Expects bins of real planes. Divides by the number of points of a plane, so that it inverts forward().
  virtual void inverse(const void* spectra, float* planes) = 0;

 private:
  FftBatch batch_;
};

// Supports these sizes:
// - rows of 2 .. 256 points, plane- or frequency-major: powers of two, 10, 12, 14, 18, 20, 24, 28, 30, 36, 40 and 48
// - planes of those sizes up to 64 x 64, plane-major or packed: square, with one side twice the other, 8 x 32 and 16 x
//   64
// - planes of 128 x 128 and 256 x 256, plane- or frequency-major
// The last group runs in two launches and needs as much memory as the spectra. The exception is a large batch of 128 x
// 128 planes, plane-major. Throws for other sizes, and if the stream's device is not a GPU.
std::unique_ptr<BatchedFft> make_batched_fft(Stream& stream, const FftBatch& batch);

// Uses cuFFT, for comparison: any size, but not the packed layout. Its inverse is not scaled and overwrites the
// spectra.
std::unique_ptr<BatchedFft> make_cufft_batch(Stream& stream, const FftBatch& batch);

// The reference for the other transforms: evaluates the defining sums in double, one thread per sum. Supports up to
// 65,536 points per side, and packed planes of even height. Also runs on a CPU.
std::unique_ptr<BatchedFft> make_plain_fft(Stream& stream, const FftBatch& batch);

TWIDDLE_HD inline std::int64_t bins_of(const FftBatch& batch) {
  const std::int64_t half_row = batch.width / 2 + 1;
  if (batch.layout != BinLayout::packed) return batch.height * half_row;
  return 2 * half_row + std::int64_t(batch.height / 2 - 1) * batch.width;
}

// Packed: half of rows 0 and height / 2, which are symmetric; then rows 1 .. height / 2 - 1 in full.
TWIDDLE_HD inline BinPlace bin_place(const FftBatch& batch, std::int64_t plane, int row, int column) {
  const int half_row = batch.width / 2 + 1;
  std::int64_t bin = std::int64_t(row) * half_row + column;
  bool conjugate = false;
  if (batch.layout == BinLayout::packed) {
    conjugate = row > batch.height / 2;
    if (conjugate) row = batch.height - row, column = (batch.width - column) % batch.width;
    if (row % (batch.height / 2) == 0)
      bin = (row == 0 ? 0 : half_row) + column;
    else
      bin = 2 * half_row + std::int64_t(row - 1) * batch.width + column;
  }
  return {batch.layout == BinLayout::plane_major ? plane * bins_of(batch) + bin : bin * batch.count + plane, conjugate};
}

}  // namespace twiddle
