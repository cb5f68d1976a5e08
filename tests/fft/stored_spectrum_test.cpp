#include "fft/cuda/stored_pairs/stored_spectrum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace twiddle::stored_pairs {

TEST(StoredSpectrum, ScaledValueFitsFp16) {
  for (const float bound : {1.2e-38f, 1e-36f, 1.9e-34f, 3e-34f, 1e-30f, 3e-5f, 1.0f, 77.0f, 8e37f}) {
    const int exponent = exponent_above(bound);
    EXPECT_LT(bound * scale_without(exponent), 32768) << bound;  // 2^15: fp16 reaches almost 2^16
    // The scale is not clamped at the exponent; a product undoes it in parts.
    EXPECT_EQ(scale_without(exponent), std::ldexp(1.0, top_exponent - exponent)) << bound;
    EXPECT_EQ(scale_without(exponent) * scale_back(exponent), 1) << bound;
  }
}

// Up to two exponents are factored out of a line: those of a plane's row and column.
TEST(StoredSpectrum, RestoresSumsOfTwoExponents) {
  for (int exponent = exponent_above(1e-38f); exponent <= 127; ++exponent)
    EXPECT_EQ(scale_without(exponent) * scale_back(exponent), 1) << exponent;
}

TEST(StoredSpectrum, ZeroAndInfinityHaveNoExponent) {
  for (const float bound :
       {0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3e38f})
    EXPECT_EQ(exponent_above(bound), no_exponent) << bound;
}

TEST(StoredSpectrum, ExponentsFollowFp16AndArePadded) {
  const StoredSpectrum pairs{2, 10, 33, 64};
  EXPECT_EQ(pairs.fp16_bytes(), 10u * 33 * 64 * 2 * sizeof(float));
  EXPECT_EQ(pairs.bytes(), pairs.fp16_bytes() + (64 + 64) * sizeof(int));
  EXPECT_EQ((StoredSpectrum{1, 10, 33, 64}.fp16_bytes()), pairs.fp16_bytes() / 2);
}

}  // namespace twiddle::stored_pairs
