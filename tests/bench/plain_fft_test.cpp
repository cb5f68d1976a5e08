// The plain transform against sums on the host.
#include <gtest/gtest.h>

#include <utility>

#include "apps/bench/batched_fft.h"
#include "framework/error.h"
#include "framework/tensor.h"
#include "tests/bench/plain_fft.h"
#include "tests/support/check_close.h"
#include "tests/support/every_device.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"

namespace twiddle {
namespace {

constexpr double largest_plain_error = 1e-7;

// Any size, odd sizes included.
std::vector<FftBatch> batches() {
  std::vector<FftBatch> all;
  for (const int points : {1, 2, 3, 7, 10, 64, 100}) all.push_back({.width = points, .count = 37});
  for (const auto& [height, width] : std::vector<std::pair<int, int>>{
           {2, 2}, {3, 5}, {5, 3}, {6, 4}, {4, 7}, {8, 1}, {7, 6}, {16, 32}, {30, 30}, {64, 64}})
    all.push_back({.height = height, .width = width, .count = 5});
  const std::vector<FftBatch> plane_major = all;
  for (FftBatch batch : plane_major) {
    batch.layout = BinLayout::frequency_major;
    all.push_back(batch);
    batch.layout = BinLayout::packed;
    if (batch.height % 2 == 0) all.push_back(batch);
  }
  return all;
}

TEST_P(EveryDevice, PlainFftMatchesDefinition) {
  const auto stream = make_stream(GetParam());
  for (const FftBatch& batch : batches()) {
    SCOPED_TRACE(to_string(batch));
    const auto fft = make_plain_fft(*stream, batch);
    const std::vector<float> values = noise(batch.count * batch.height * batch.width);
    const Shape size{static_cast<std::int64_t>(values.size())};
    const Tensor planes = Tensor::from(*stream, size, values);
    Tensor spectra = Tensor::filled(*stream, {2 * batch.count * bins_of(batch)}, not_a_number);
    Tensor back = Tensor::filled(*stream, size, not_a_number);
    fft->forward(planes.read(), spectra.write());
    const std::vector<float> numbers = spectra.to_vector(*stream);
    EXPECT_LE(error_of_spectra(batch, numbers, plain_spectra(values, batch.height, batch.width)), largest_plain_error);
    fft->inverse(spectra.read(), back.write());
    EXPECT_EQ(spectra.to_vector(*stream), numbers) << "an inverse overwrites them";
    EXPECT_LE(relative_error(back.to_vector(*stream), values), largest_plain_error);
  }
}

// Bins that are their own conjugates have no imaginary part: the inverse ignores what is stored there.
TEST_P(EveryDevice, PlainFftInverseIgnoresUnusedImaginaryParts) {
  const auto stream = make_stream(GetParam());
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major, BinLayout::packed}) {
    const FftBatch batch{.height = 6, .width = 8, .count = 3, .layout = layout};
    SCOPED_TRACE(to_string(batch));
    const auto fft = make_plain_fft(*stream, batch);
    const std::vector<float> values = noise(batch.count * batch.height * batch.width);
    const Tensor planes = Tensor::from(*stream, {static_cast<std::int64_t>(values.size())}, values);
    Tensor spectra(*stream, {2 * batch.count * bins_of(batch)}), back(*stream, planes.shape());
    fft->forward(planes.read(), spectra.write());
    std::vector<float> numbers = spectra.to_vector(*stream);
    for (std::int64_t plane = 0; plane < batch.count; ++plane)
      for (const int row : {0, batch.height / 2})
        for (const int column : {0, batch.width / 2})
          numbers[static_cast<std::size_t>(2 * bin_place(batch, plane, row, column).index + 1)] = 5;
    fft->inverse(Tensor::from(*stream, spectra.shape(), numbers).read(), back.write());
    EXPECT_LE(relative_error(back.to_vector(*stream), values), largest_plain_error);
  }
}

TEST(PlainFft, RefusesInvalidSizes) {
  const auto host = make_stream({});
  for (const FftBatch& batch :
       {FftBatch{.width = 8, .count = 0}, FftBatch{.width = 0, .count = 1}, FftBatch{.width = 65'537, .count = 1},
        FftBatch{.height = 3, .width = 8, .count = 1, .layout = BinLayout::packed},
        FftBatch{.width = 8, .count = 1, .layout = BinLayout::packed}})
    EXPECT_THROW(make_plain_fft(*host, batch), Error) << to_string(batch);
}

}  // namespace
}  // namespace twiddle
