// Products of split fp16 (high + low) and of single fp16, beyond frequency_products_test.cpp: values of very different
// scale, and NaN and infinity. pair_scales_test.cpp tests the arithmetic of the scales.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/magnitudes.h"
#include "tests/support/noise.h"
#include "tests/support/on_gpu.h"
#include "tests/support/plain_backend.h"

namespace twiddle {
namespace {

constexpr std::int64_t square_bins = 4, square_side = 64;
constexpr std::int64_t square_elements = square_bins * square_side * square_side;

// All three passes, square: the factor that is contiguous along k differs from pass to pass.
const FrequencyGemm square_forward{square_bins, square_side, square_side, square_side, false, false, true, true};
const FrequencyGemm square_backward_input{square_bins, square_side, square_side, square_side};
const FrequencyGemm square_backward_weight{square_bins, square_side, square_side, square_side, true, true};

std::vector<float> factor(unsigned seed, bool along_k, const Magnitude& size) {
  std::vector<float> factor = noise(2 * square_elements, seed);
  for (std::int64_t i = 0; i < 2 * square_elements; ++i) {
    const std::int64_t row = i / 2 / square_side % square_side, column = i / 2 % square_side;
    float& number = factor[static_cast<std::size_t>(i)];
    number *= static_cast<float>(along_k ? size(row, column) : size(column, row));
  }
  return factor;
}

std::vector<float> row_of(const std::vector<float>& c, std::int64_t row) {
  return {c.begin() + 2 * row * square_side, c.begin() + 2 * (row + 1) * square_side};
}

class ComplexPairs : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    for (auto& product : backend_.products)
      if (product->name().starts_with("pairs") || product->name().starts_with("halves"))
        products.push_back(product.get());
    if (products.empty()) GTEST_SKIP() << "no fp16 tensor cores";
  }

  std::vector<float> run(FrequencyProduct& product, const FrequencyGemm& gemm, const std::vector<float>& a,
                         const std::vector<float>& b) {
    const Tensor left = on_device(a), right = on_device(b);
    Tensor scratch = poisoned(product.scratch_bytes(gemm)), result = poisoned(Shape{2 * square_elements});
    product.run(*ctx, gemm, left.read(), right.read(), result.write(), scratch.write());
    return on_host(result);
  }

  // Checks the error of all values and of each row of the result. With single fp16 both stay within the tf32 limit.
  void expect_product(const FrequencyGemm& gemm, const Magnitude& of_a, const Magnitude& of_b,
                      double most_of_row = 1e-6) {
    const std::vector<float> a = factor(1, !gemm.transpose_a, of_a), b = factor(2, gemm.transpose_b, of_b);
    Context host;
    std::vector<float> expected(2 * square_elements);
    plain.products.front()->run(host, gemm, a.data(), b.data(), expected.data(), nullptr);
    for (FrequencyProduct* const product : products) {
      SCOPED_TRACE(product->name());
      const bool fp32 = product->keeps_fp32();
      const std::vector<float> actual = run(*product, gemm, a, b);
      EXPECT_LE(relative_error(actual, expected), fp32 ? 4e-7 : 4e-4);
      for (std::int64_t row = 0; row < square_bins * square_side; ++row)
        EXPECT_LE(relative_error(row_of(actual, row), row_of(expected, row)), fp32 ? most_of_row : 1e-3)
            << "row " << row;
    }
  }

  std::vector<FrequencyProduct*> products;
  const SpectralBackend plain = plain_backend({}, {SpectrumStorage::interleaved});

 private:
  SpectralBackend backend_ = fbfft();
};

TEST_F(ComplexPairs, MeetErrorLimitForMixedRows) {
  for (const FrequencyGemm& gemm : {square_forward, square_backward_input, square_backward_weight}) {
    expect_product(gemm, same_size, same_size);
    expect_product(
        gemm, [](auto, auto) { return 1e-6; }, [](auto, auto) { return 1e4; });
    expect_product(
        gemm, [](auto line, auto) { return decades(line); }, same_size);
    expect_product(
        gemm, [](auto line, auto) { return line == 5 ? 1e6 : 1; }, same_size);
  }
}

// A step of a product covers 32 k: values of one step may be far larger than those of the previous one.
TEST_F(ComplexPairs, MeetErrorLimitForMixedSteps) {
  for (const FrequencyGemm& gemm : {square_forward, square_backward_input, square_backward_weight}) {
    const Magnitude growing = [](auto line, auto k) { return k < 32 && line % 3 > 0 ? 1e-6 : 1; };
    expect_product(gemm, growing, same_size);
    expect_product(gemm, same_size, growing);
    expect_product(
        gemm, [](auto, auto k) { return k < 32 ? 1e-5 : 1; }, [](auto, auto k) { return k < 32 ? 1e5 : 1; });
    expect_product(
        gemm, [](auto line, auto k) { return k < 32 && line % 2 == 0 ? 0 : 1; }, same_size);
  }
}

TEST_F(ComplexPairs, MeetErrorLimitForMixedChannels) {
  for (const FrequencyGemm& gemm : {square_forward, square_backward_input}) {
    expect_product(
        gemm, [](auto, auto k) { return decades(k); }, [](auto, auto k) { return 1 / decades(k); });
    // Channels are zero in all rows where weights are large, or in all rows but one. In the latter case large weights
    // leave fewer digits to the others of a column, which affects rows that do not use them.
    const Magnitude large_weights = [](auto, auto k) { return k % 7 == 2 ? 1e6 : 1; };
    expect_product(
        gemm, [](auto, auto k) { return k % 7 == 2 ? 0 : 1; }, large_weights);
    expect_product(
        gemm, [](auto line, auto k) { return k % 7 == 2 && line != 10 ? 0 : 1; }, large_weights, 5e-6);
    expect_product(
        gemm, [](auto line, auto k) { return line == 5 && k == 9 ? 1e6 : 1; }, same_size);
  }
}

TEST_F(ComplexPairs, KeepNonFiniteInItsRow) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> a = noise(2 * square_elements, 1);
  const std::vector<float> b = noise(2 * square_elements, 2);
  a[2 * (5 * square_side + 3)] = std::numeric_limits<float>::quiet_NaN(), a[2 * (7 * square_side + 40)] = infinity;
  for (FrequencyProduct* const product : products) {
    const std::vector<float> c = run(*product, square_forward, a, b);
    for (std::int64_t i = 0; i < square_elements; ++i) {
      const std::int64_t row = i / square_side;
      const float re = c[static_cast<std::size_t>(2 * i)], im = c[static_cast<std::size_t>(2 * i + 1)];
      EXPECT_EQ(std::isfinite(re) && std::isfinite(im), row != 5 && row != 7) << product->name() << ", row " << row;
    }
  }
}

TEST_F(ComplexPairs, RejectSmallOrUnalignedProducts) {
  for (const FrequencyProduct* const product : products) {
    EXPECT_TRUE(product->supports(square_forward));
    EXPECT_FALSE(product->supports({4, 640, 6400, 30, false, false, true, true})) << "few channels";
    EXPECT_FALSE(product->supports({4, 64, 64, 65, false, false, true, true})) << "rows of an odd length";
    EXPECT_FALSE(product->supports({1, 64, 64, 64, false, false, true, true})) << "few products";
  }
}

}  // namespace
}  // namespace twiddle
