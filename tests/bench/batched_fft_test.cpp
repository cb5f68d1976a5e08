// Batched transforms as they run on a GPU: batch_steps_test.cpp runs their blocks on the CPU. Batches that are too
// large for sums on the host are compared with the plain transform.
#include "apps/bench/batched_fft.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "framework/error.h"
#include "tests/bench/plain_fft.h"
#include "tests/support/check_close.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"
#include "tests/support/on_gpu.h"
#include "tests/support/plane_sizes.h"

namespace twiddle {
namespace {

constexpr double rows_promise = 3e-7, planes_promise = 5e-7;

double promise(const FftBatch& batch) {
  return batch.height == 1 ? rows_promise : planes_promise;
}

std::vector<FftBatch> all_sizes() {
  std::vector<FftBatch> all;
  for (const int points : {2, 4, 8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 64, 128, 256})
    for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major})
      all.push_back({.width = points, .layout = layout});
  for (const auto& [height, width] : plane_sizes())
    for (const BinLayout layout : {BinLayout::plane_major, BinLayout::packed})
      all.push_back({.height = height, .width = width, .layout = layout});
  for (const int points : {128, 256})
    for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major})
      all.push_back({.height = points, .width = points, .layout = layout});
  return all;
}

class BatchedFftOnGpu : public OnGpu {
 protected:
  std::vector<float> spectra_of(BatchedFft& fft, const std::vector<float>& values) {
    const Tensor planes = on_device(values);
    Tensor spectra = poisoned(spectrum_bytes(fft.batch()));
    fft.forward(planes.read(), spectra.write());
    return on_host(spectra);
  }
  // Reads the bins of one plane, in the plane-major layout of a batch of one.
  std::vector<float> spectrum_of(const FftBatch& batch, const Tensor& spectra, std::int64_t plane) {
    const FftBatch one{.height = batch.height, .width = batch.width, .count = 1};
    std::vector<float> numbers(static_cast<std::size_t>(2 * bins_of(one)));
    for (int row = 0; row < batch.height; ++row)
      for (int column = 0; column <= batch.width / 2; ++column)
        stream().copy(numbers.data() + 2 * bin_place(one, 0, row, column).index,
                      spectra.read() + 2 * bin_place(batch, plane, row, column).index, 2 * sizeof(float));
    stream().synchronize();
    return numbers;
  }
  // Noise that repeats after a prime number of values: no two of a million planes are the same.
  Tensor many_planes(const FftBatch& batch) {
    if (!noise_.defined()) noise_ = on_device(noise(1'000'003));
    Tensor planes = poisoned(plane_bytes(batch));
    float* const values = planes.write();
    for (std::int64_t first = 0; first < planes.size(); first += noise_.size()) {
      const std::int64_t count = std::min(noise_.size(), planes.size() - first);
      stream().copy(values + first, noise_.read(), static_cast<std::size_t>(count) * sizeof(float));
    }
    return planes;
  }
  void expect_there_and_back(BatchedFft& fft, float larger = 1);
  void expect_as_plain(const FftBatch& batch);
  void expect_many_as_plain(bool rows);

 private:
  Tensor noise_;
};

void BatchedFftOnGpu::expect_there_and_back(BatchedFft& fft, float larger) {
  const FftBatch batch = fft.batch();
  SCOPED_TRACE(to_string(batch));
  const std::vector<float> values = noise(batch.count * batch.height * batch.width);
  const std::vector<float> numbers = spectra_of(fft, values);
  EXPECT_LE(error_of_spectra(batch, numbers, plain_spectra(values, batch.height, batch.width)), promise(batch));
  Tensor spectra = on_device(numbers), back = poisoned(plane_bytes(batch));
  fft.inverse(spectra.read(), back.write());
  std::vector<float> result = on_host(back);
  for (float& value : result) value /= larger;
  EXPECT_LE(relative_error(result, values), promise(batch));
}

// Counts all values of spectra and planes.
void BatchedFftOnGpu::expect_as_plain(const FftBatch& batch) {
  SCOPED_TRACE(to_string(batch));
  const auto fft = make_batched_fft(stream(), batch), plain = make_plain_fft(stream(), batch);
  const Tensor planes = many_planes(batch);
  Tensor spectra = poisoned(spectrum_bytes(batch)), expected = poisoned(spectrum_bytes(batch));
  fft->forward(planes.read(), spectra.write());
  plain->forward(planes.read(), expected.write());
  EXPECT_LE(relative_error(on_host(spectra), on_host(expected)), promise(batch));
  Tensor back = poisoned(plane_bytes(batch)), expected_back = poisoned(plane_bytes(batch));
  fft->inverse(expected.read(), back.write());
  plain->inverse(expected.read(), expected_back.write());
  EXPECT_LE(relative_error(on_host(back), on_host(expected_back)), promise(batch));
}

TEST_F(BatchedFftOnGpu, MatchDefinitionInAllSizes) {
  for (FftBatch batch : all_sizes())
    for (const int count : {1, 37, 300}) {
      if (batch.height * batch.width * count > 1 << 21) continue;
      batch.count = count;
      const auto fft = make_batched_fft(stream(), batch);
      expect_there_and_back(*fft);
    }
}

// Large batches use other kernels than small ones.
void BatchedFftOnGpu::expect_many_as_plain(bool rows) {
  constexpr int points = 1 << 22;
  for (FftBatch batch : all_sizes()) {
    batch.count = points / (batch.height * batch.width) + 1;
    if ((batch.height == 1) == rows) expect_as_plain(batch);
  }
}

TEST_F(BatchedFftOnGpu, MatchPlainFftForManyRows) {
  expect_many_as_plain(true);
}

TEST_F(BatchedFftOnGpu, MatchPlainFftForManyPlanes) {
  expect_many_as_plain(false);
}

TEST_F(BatchedFftOnGpu, MatchPlainFftForMillionRows) {
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major})
    expect_as_plain({.width = 64, .count = 999'999, .layout = layout});
}

TEST_F(BatchedFftOnGpu, MatchPlainFftForThousandPlanes) {
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::packed})
    expect_as_plain({.height = 32, .width = 32, .count = 20'001, .layout = layout});
  for (const BinLayout layout : {BinLayout::plane_major, BinLayout::frequency_major})
    expect_as_plain({.height = 128, .width = 128, .count = 1001, .layout = layout});
}

// So large a batch that packed transforms of these sizes use blocks of another shape.
TEST_F(BatchedFftOnGpu, MatchPlainFftForWideBlocks) {
  for (const auto& [height, width] : {std::pair{20, 10}, {24, 24}, {28, 28}, {30, 30}, {32, 32}, {36, 36}})
    expect_as_plain({.height = height, .width = width, .count = 65'537, .layout = BinLayout::packed});
}

TEST_F(BatchedFftOnGpu, AgreeWithCufft) {
  for (FftBatch batch : all_sizes()) {
    batch.count = 5;
    if (batch.layout == BinLayout::packed) batch.layout = BinLayout::frequency_major;
    const auto cufft = make_cufft_batch(stream(), batch);
    expect_there_and_back(*cufft, static_cast<float>(batch.height * batch.width));
  }
}

TEST_F(BatchedFftOnGpu, AreLinearAndSatisfyParseval) {
  for (FftBatch batch : all_sizes()) {
    SCOPED_TRACE(to_string(batch));
    batch.count = 3;
    const auto fft = make_batched_fft(stream(), batch);
    const std::int64_t size = batch.count * batch.height * batch.width;
    const std::vector<float> a = noise(size, 1), b = noise(size, 2);
    std::vector<float> sum = a;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += 2 * b[i];
    const std::vector<float> of_a = spectra_of(*fft, a), of_b = spectra_of(*fft, b), of_sum = spectra_of(*fft, sum);
    std::vector<float> expected = of_a;
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += 2 * of_b[i];
    EXPECT_LE(relative_error(of_sum, expected), promise(batch));

    double in_planes = 0, in_bins = 0;
    for (const float value : a) in_planes += double(value) * value;
    for (std::int64_t plane = 0; plane < batch.count; ++plane)
      for (int row = 0; row < batch.height; ++row)
        for (int column = 0; column <= batch.width / 2; ++column) {
          const auto at = static_cast<std::size_t>(2 * bin_place(batch, plane, row, column).index);
          const double times = column % (batch.width / 2) == 0 ? 1 : 2;  // the others stand for two
          in_bins += times * (double(of_a[at]) * of_a[at] + double(of_a[at + 1]) * of_a[at + 1]);
        }
    EXPECT_NEAR(in_bins / (batch.height * batch.width) / in_planes, 1, 1e-6);
  }
}

// Repeats the same planes until their bytes need more than 32 bits. Compares the last spectrum with the definition.
TEST_F(BatchedFftOnGpu, TransformMoreThanTwoGigabytes) {
  const FftBatch batches[] = {{.width = 64, .count = 9'000'000},
                              {.width = 256, .count = 2'200'000, .layout = BinLayout::frequency_major},
                              {.height = 16, .width = 16, .count = 2'200'000},
                              {.height = 128, .width = 128, .count = 34'000},
                              {.height = 128, .width = 128, .count = 34'000, .layout = BinLayout::frequency_major}};
  for (const FftBatch& batch : batches) {
    SCOPED_TRACE(to_string(batch));
    ASSERT_GT(plane_bytes(batch), std::size_t(1) << 31);
    const std::int64_t size = std::int64_t(batch.height) * batch.width, together = 1000;
    const std::vector<float> some = noise(together * size);
    const Tensor sample = on_device(some);
    Tensor planes = poisoned(plane_bytes(batch));
    for (std::int64_t first = 0; first < batch.count; first += together)
      stream().copy(planes.write() + first * size, sample.read(), sample.bytes());
    const auto fft = make_batched_fft(stream(), batch);
    Tensor spectra = poisoned(spectrum_bytes(batch));
    fft->forward(planes.read(), spectra.write());
    const std::vector<float> last(some.end() - size, some.end());
    const FftBatch one{.height = batch.height, .width = batch.width, .count = 1};
    EXPECT_LE(error_of_spectra(one, spectrum_of(batch, spectra, batch.count - 1),
                               plain_spectra(last, batch.height, batch.width)),
              promise(batch));
    stream().fill(planes.write(), planes.size(), not_a_number);
    fft->inverse(spectra.read(), planes.write());
    for (const std::int64_t first : {std::int64_t(0), batch.count / 2000 * 1000, batch.count - together}) {
      const std::vector<float> back = on_host(planes.read() + first * size, some.size());
      EXPECT_LE(relative_error(back, some), promise(batch)) << "planes from " << first << " on";
    }
  }
}

TEST_F(BatchedFftOnGpu, RunInCapturedGraph) {
  const FftBatch batches[] = {{.width = 256, .count = 70},
                              {.height = 32, .width = 32, .count = 70},
                              {.height = 32, .width = 32, .count = 70, .layout = BinLayout::packed},
                              {.height = 128, .width = 128, .count = 70, .layout = BinLayout::frequency_major}};
  for (const FftBatch& batch : batches) {
    SCOPED_TRACE(to_string(batch));
    const auto fft = make_batched_fft(stream(), batch);
    const std::vector<float> values = noise(batch.count * batch.height * batch.width);
    const Tensor planes = on_device(values);
    Tensor spectra = poisoned(spectrum_bytes(batch)), back = poisoned(plane_bytes(batch));
    float* const written = back.write();
    void* const bins = spectra.write();
    const auto there_and_back = [&] {
      fft->forward(planes.read(), bins);
      fft->inverse(bins, written);
    };
    there_and_back();
    const auto graph = stream().capture(there_and_back);
    ASSERT_NE(graph, nullptr);
    stream().fill(written, back.size(), not_a_number);
    graph->replay();
    EXPECT_LE(relative_error(on_host(back), values), promise(batch));
  }
}

// Each starts before the previous one has finished.
TEST_F(BatchedFftOnGpu, RunInStreamOrder) {
  const FftBatch batches[] = {{.width = 2, .count = 1},
                              {.width = 64, .count = 37},
                              {.width = 256, .count = 8000, .layout = BinLayout::frequency_major},
                              {.height = 16, .width = 16, .count = 37},
                              {.height = 64, .width = 64, .count = 300},
                              {.height = 128, .width = 128, .count = 3},
                              {.height = 8, .width = 8, .count = 37, .layout = BinLayout::packed},
                              {.height = 32, .width = 32, .count = 300, .layout = BinLayout::packed},
                              {.height = 64, .width = 64, .count = 300, .layout = BinLayout::packed},
                              {.height = 30, .width = 30, .count = 66'000, .layout = BinLayout::packed},
                              {.height = 128, .width = 128, .count = 40, .layout = BinLayout::frequency_major}};
  constexpr int times = 10, plays = 3;
  for (const FftBatch& batch : batches) {
    SCOPED_TRACE(to_string(batch));
    const auto fft = make_batched_fft(stream(), batch);
    const std::vector<float> values = noise(batch.count * batch.height * batch.width);
    Tensor planes = on_device(values), spectra = poisoned(spectrum_bytes(batch));
    float* const written = planes.write();
    void* const bins = spectra.write();
    const auto there_and_back = [&] {
      for (int i = 0; i < times; ++i) {
        fft->forward(written, bins);
        fft->inverse(bins, written);
      }
    };
    there_and_back();
    const auto graph = stream().capture(there_and_back);
    ASSERT_NE(graph, nullptr);
    for (int i = 0; i < plays; ++i) graph->replay();
    EXPECT_LE(relative_error(on_host(planes), values), times * (1 + plays) * promise(batch));
  }
}

TEST_F(BatchedFftOnGpu, RefuseUnsupportedSizes) {
  const auto message = [&](const FftBatch& batch) -> std::string {
    try {
      make_batched_fft(stream(), batch);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(message({.width = 22, .count = 7}).find("no batched transform of 7 rows of 22, plane-major"),
            std::string::npos);
  EXPECT_NE(message({.height = 9, .width = 8, .count = 7}).find("7 planes of 9x8"), std::string::npos);
  EXPECT_NE(message({.height = 8, .width = 8, .count = 7, .layout = BinLayout::frequency_major}), "");
  EXPECT_NE(message({.height = 128, .width = 128, .count = 7, .layout = BinLayout::packed}), "");
  EXPECT_NE(message({.width = 8, .count = 0}), "");
  EXPECT_THROW(make_cufft_batch(stream(), {.height = 8, .width = 8, .count = 1, .layout = BinLayout::packed}), Error);
  const auto fft = make_batched_fft(stream(), {.width = 8, .count = 4});
  const Tensor planes = poisoned(1024);
  Tensor spectra = poisoned(1024);
  EXPECT_THROW(fft->forward(planes.read() + 1, spectra.write()), Error);
}

TEST(BatchedFft, ReturnsBinIndexInEachLayout) {
  const FftBatch natural{.height = 8, .width = 6, .count = 10};
  EXPECT_EQ(bins_of(natural), 32);
  EXPECT_EQ(bin_place(natural, 2, 3, 1).index, 2 * 32 + 3 * 4 + 1);
  FftBatch apart = natural;
  apart.layout = BinLayout::frequency_major;
  EXPECT_EQ(bin_place(apart, 2, 3, 1).index, (3 * 4 + 1) * 10 + 2);
  FftBatch packed = natural;
  packed.layout = BinLayout::packed;
  EXPECT_EQ(bins_of(packed), 2 * 4 + 3 * 6);
  EXPECT_EQ(bin_place(packed, 2, 0, 3).index, 3 * 10 + 2);
  EXPECT_EQ(bin_place(packed, 2, 4, 3).index, (4 + 3) * 10 + 2);
  EXPECT_EQ(bin_place(packed, 2, 3, 1).index, (8 + 2 * 6 + 1) * 10 + 2);
  EXPECT_FALSE(bin_place(packed, 2, 3, 1).conjugate);
  const BinPlace mirrored = bin_place(packed, 2, 5, 1);  // that of row 3, column 5
  EXPECT_EQ(mirrored.index, (8 + 2 * 6 + 5) * 10 + 2);
  EXPECT_TRUE(mirrored.conjugate);
  EXPECT_EQ(to_string(FftBatch{.height = 32, .width = 32, .count = 4096, .layout = BinLayout::packed}),
            "4,096 planes of 32x32, packed");
  EXPECT_EQ(to_string(FftBatch{.width = 64, .count = 12}), "12 rows of 64, plane-major");
}

TEST(BatchedFft, RequiresGpu) {
  const auto host = make_stream({});
  for (const auto make : {+[](Stream& stream) { return make_batched_fft(stream, {.width = 8, .count = 1}); },
                          +[](Stream& stream) { return make_cufft_batch(stream, {.width = 8, .count = 1}); }})
    try {
      make(*host);
      ADD_FAILURE() << "accepted a CPU";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
    }
}

}  // namespace
}  // namespace twiddle
