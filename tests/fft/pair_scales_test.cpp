#include "fft/cuda/pair_products/pair_scales.h"

#include <gtest/gtest.h>

#include <limits>

namespace twiddle::pairs {

TEST(PairScales, ExponentIsFloorOfLog2) {
  EXPECT_EQ(exponent_of(1), 0);
  EXPECT_EQ(exponent_of(1.999f), 0);
  EXPECT_EQ(exponent_of(0.5f), -1);
  EXPECT_EQ(exponent_of(std::numeric_limits<float>::max()), 127);
  EXPECT_EQ(exponent_of(0), -127);
  EXPECT_EQ(exponent_of(std::numeric_limits<float>::infinity()), 128);
  for (const int exponent : {-126, -1, 0, 5, 127}) EXPECT_EQ(exponent_of(power_of_two(exponent)), exponent);
}

TEST(PairScales, RowScaleAvoidsFp16Overflow) {
  for (const float largest : {1e-30f, 3e-5f, 1.0f, 77.0f, 3e38f}) {
    const int scale = scale_of_row(largest);
    EXPECT_LT(largest * power_of_two(scale), 32768) << largest;
    EXPECT_GE(largest * power_of_two(scale), 16384) << largest;
    EXPECT_EQ(power_of_two(scale) * power_of_two(-scale), 1) << largest;
  }
  EXPECT_EQ(scale_of_row(0), 126);  // zeros stay zeros
  EXPECT_EQ(scale_of_row(std::numeric_limits<float>::infinity()), 0);
}

TEST(PairScales, ColumnMeanIgnoresZeroAndInfinity) {
  ColumnExponent column;
  EXPECT_EQ(column.mean(), -126);  // a column of zeros: what it meets is made small
  for (const float value :
       {8.0f, -2.0f, 0.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    column.add(value);
  EXPECT_EQ(column.mean(), 2);
  ColumnExponent other;
  other.add(1024.0f);
  column.add(other);
  EXPECT_EQ(column.mean(), 4);  // of 3, 1 and 10
}

}  // namespace twiddle::pairs
