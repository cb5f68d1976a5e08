#include "framework/convolution.h"

#include <gtest/gtest.h>

#include "framework/error.h"

namespace twiddle {

namespace {

std::string complaint(const ConvProblem& problem) {
  try {
    validate(problem);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "";
}

const ConvProblem alexnet1{.batch = 16,
                           .channels = 3,
                           .height = 224,
                           .width = 224,
                           .filters = 64,
                           .kernel_h = 11,
                           .kernel_w = 11,
                           .stride_h = 4,
                           .stride_w = 4,
                           .pad_h = 2,
                           .pad_w = 2};

}  // namespace

TEST(Convolution, ComputesOutputShapeAndFlops) {
  EXPECT_EQ(alexnet1.output_shape(), (Shape{16, 64, 55, 55}));
  EXPECT_DOUBLE_EQ(alexnet1.flops(), 2.0 * 16 * 64 * 55 * 55 * 3 * 11 * 11);
  EXPECT_EQ(complaint(alexnet1), "");
}

TEST(Convolution, FormatsProblem) {
  EXPECT_EQ(to_string(alexnet1), "16x3x224x224 * 64x3x11x11 stride 4 pad 2");
  const ConvProblem odd{.channels = 4,
                        .height = 9,
                        .width = 9,
                        .filters = 6,
                        .kernel_h = 3,
                        .kernel_w = 1,
                        .stride_h = 2,
                        .pad_w = 1,
                        .dilation = 2,
                        .groups = 2};
  EXPECT_EQ(to_string(odd), "1x4x9x9 * 6x2x3x1 stride 2x1 pad 0x1 dilation 2 groups 2");
  EXPECT_EQ(to_string(ConvPass::backward_weight), "backward_weight");
  EXPECT_EQ(to_string(Precision::tf32), "tf32");
}

TEST(Convolution, ExplainsImpossibleProblem) {
  EXPECT_EQ(complaint({.height = 8, .width = 8, .kernel_h = 11, .kernel_w = 11}),
            "kernel 11x11 does not fit the input 8x8 with pad 0: the padded input is 8x8");
  EXPECT_EQ(complaint({.height = 8, .width = 9, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .dilation = 6}),
            "kernel 3x3 with dilation 6 (13x13) does not fit the input 8x9 with pad 1x0: the padded input is 10x9");
  EXPECT_EQ(complaint({.channels = 3, .filters = 4, .groups = 2}), "3 channels cannot be split into 2 equal groups");
  EXPECT_EQ(complaint({.channels = 4, .filters = 3, .groups = 2}), "3 filters cannot be split into 2 equal groups");
  EXPECT_EQ(complaint({.stride_h = 0}), "stride is 0; it must be from 1 to 16777216");
}

TEST(Convolution, RefusesSizesThatOverflow) {
  const int huge = 1 << 24;
  EXPECT_NE(complaint({.height = huge, .width = huge, .kernel_h = huge, .dilation = huge}), "");
  EXPECT_NE(complaint({.batch = huge, .channels = huge}), "");
  EXPECT_NE(complaint({.filters = huge, .kernel_h = huge, .pad_h = huge}), "");
  EXPECT_NE(complaint({.height = 2147483647}), "");
  EXPECT_NE(complaint({.pad_w = -1}), "");
}

}  // namespace twiddle
