#include "layers/conv/engines/cpu_rule.h"

#include <gtest/gtest.h>

#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

bool spectra(const char* problem) {
  return spectra_pay_over_onednn(conv_problem(problem));
}
bool spectra_without_onednn(const char* problem) {
  return spectra_pay_over_products(conv_problem(problem));
}

TEST(CpuRule, FftPaysForLargeGroupedKernels) {
  for (const char* problem : {"16x64x28x28 * 64x64x31x31 pad 15", "16x64x28x28 * 64x8x31x31 pad 15 groups 8",
                              "16x64x28x28 * 64x2x31x31 pad 15 groups 32", "16x64x28x28 * 64x1x31x31 pad 15 groups 64",
                              "16x64x28x28 * 64x1x9x9 pad 4 groups 64", "16x64x28x28 * 64x2x5x5 pad 2 groups 32",
                              "16x96x56x56 * 96x4x7x7 pad 3 groups 24"})
    EXPECT_TRUE(spectra(problem)) << problem;
}

TEST(CpuRule, FftLosesOnSmallProblems) {
  for (const char* problem : {"16x64x28x28 * 64x64x3x3 pad 1", "16x96x56x56 * 96x1x5x5 pad 2 groups 96",
                              "64x1x28x28 * 20x1x7x7", "16x64x11x11 * 64x64x5x5", "16x64x28x28 * 64x64x7x1 pad 3x0"})
    EXPECT_FALSE(spectra(problem)) << problem;
  EXPECT_FALSE(spectra("16x16x7x7 * 16x2x7x7 pad 3 groups 8")) << "small outputs";
  EXPECT_FALSE(spectra("4x64x1x4096 * 64x64x1x7 pad 0x3"));
}

TEST(CpuRule, FftPaysForLongRowKernels) {
  for (const char* problem : {"4x64x1x4096 * 64x64x1x9 pad 0x4", "4x64x1x4096 * 64x1x1x1024 pad 0x512 groups 64"})
    EXPECT_TRUE(spectra(problem)) << problem;
}

TEST(CpuRule, FftPaysForSmallKernels) {
  EXPECT_TRUE(spectra_without_onednn("16x64x28x28 * 64x64x3x3 pad 1"));
  EXPECT_TRUE(spectra_without_onednn("16x64x28x28 * 64x1x31x31 pad 15 groups 64"));
  EXPECT_FALSE(spectra_without_onednn("16x64x28x28 * 64x4x3x3 pad 1 groups 16"));
  EXPECT_FALSE(spectra_without_onednn("8x512x14x14 * 512x512x3x3 pad 1")) << "more kernels than images";
  EXPECT_TRUE(spectra_without_onednn("16x384x16x16 * 384x384x5x5 pad 2"));
  EXPECT_FALSE(spectra_without_onednn("16x64x28x28 * 64x64x1x1"));
}

TEST(CpuRule, WinogradPaysForManyTiles) {
  for (const char* problem : {"1x64x28x28 * 64x64x3x3 pad 1", "1x32x24x24 * 32x32x3x3 pad 1",
                              "2x512x14x14 * 512x512x3x3 pad 1", "16x512x7x7 * 512x512x3x3 pad 1"})
    EXPECT_TRUE(winograd_pays_over_onednn(conv_problem(problem))) << problem;
  for (const char* problem :
       {"1x512x14x14 * 512x512x3x3 pad 1", "4x512x7x7 * 512x512x3x3 pad 1", "32x64x3x3 * 64x64x3x3 pad 1",
        "16x3x32x32 * 32x3x3x3 pad 1", "16x64x28x28 * 64x16x3x3 pad 1 groups 4"})
    EXPECT_FALSE(winograd_pays_over_onednn(conv_problem(problem))) << problem;
}

TEST(CpuRule, DirectDepthwisePaysForSmallKernels) {
  EXPECT_TRUE(depthwise_pays(conv_problem("16x64x28x28 * 64x1x3x3 pad 1 groups 64")));
  EXPECT_TRUE(depthwise_pays(conv_problem("16x64x32x32 * 64x1x5x5 pad 2 groups 64")));
  EXPECT_TRUE(depthwise_pays(conv_problem("16x3x14x14 * 3x1x5x5 pad 2 groups 3"))) << "few channels";
  EXPECT_TRUE(depthwise_pays(conv_problem("16x64x28x28 * 64x1x13x13 stride 2 pad 6 groups 64")));
  for (const char* problem : {"16x64x28x28 * 64x1x31x31 pad 15 groups 64", "16x64x28x28 * 64x1x13x13 pad 6 groups 64",
                              "16x64x7x7 * 64x1x13x13 pad 6 groups 64", "16x64x14x14 * 64x1x5x5 pad 2 groups 64",
                              "16x96x56x56 * 96x1x7x7 pad 3 groups 96"}) {
    EXPECT_FALSE(depthwise_pays(conv_problem(problem))) << problem;
    EXPECT_TRUE(spectra(problem)) << problem;
  }
}

TEST(CpuRule, OnednnRunsSmallDepthwiseKernels) {
  for (const char* problem : {"16x64x28x28 * 64x1x3x3 pad 1 groups 64", "16x64x7x7 * 64x1x1x1 groups 64",
                              "16x64x56x56 * 64x1x3x3 stride 2 pad 1 groups 64"})
    EXPECT_FALSE(depthwise_pays_over_onednn(conv_problem(problem))) << problem;
  for (const char* problem :
       {"16x64x28x28 * 64x1x3x3 pad 2 dilation 2 groups 64", "16x3x28x28 * 3x1x3x3 pad 1 groups 3",
        "16x64x28x28 * 64x1x1x1 groups 64", "16x64x28x28 * 64x1x5x5 stride 2 pad 2 groups 64"})
    EXPECT_TRUE(depthwise_pays_over_onednn(conv_problem(problem))) << problem;
}

TEST(CpuRule, GemmRunsLayersOfFewFilters) {
  for (const char* problem : {"1x64x64x64 * 1x64x7x7 pad 3", "1x64x64x64 * 3x64x3x3 pad 1",
                              "1x64x64x64 * 3x64x1x7 pad 0x3", "16x256x7x7 * 3x256x3x3 pad 1",
                              "1x64x64x64 * 16x8x3x3 pad 1 groups 8", "1x64x64x64 * 4x64x3x3 pad 2 dilation 2"}) {
    EXPECT_FALSE(onednn_pays(conv_problem(problem))) << problem;
    EXPECT_FALSE(spectra(problem) || spectra_without_onednn(problem)) << problem;
  }
  for (const char* problem : {"1x64x64x64 * 3x64x3x3 stride 2 pad 1", "1x8x64x64 * 3x8x3x3 pad 1",
                              "1x512x7x7 * 4x512x3x3 pad 1", "1x64x64x64 * 16x64x3x3 pad 1"})
    EXPECT_TRUE(onednn_pays(conv_problem(problem))) << problem;
  EXPECT_TRUE(spectra("1x64x64x64 * 3x64x9x9 pad 4"));
}

TEST(CpuRule, GemmRunsMatrixProducts) {
  EXPECT_FALSE(onednn_pays(conv_problem("16x64x28x28 * 128x64x1x1")));
  EXPECT_TRUE(onednn_pays(conv_problem("16x512x7x7 * 512x512x1x1"))) << "too small, one image at a time";
  EXPECT_TRUE(onednn_pays(conv_problem("16x64x28x28 * 128x64x1x1 stride 2")));
  EXPECT_TRUE(onednn_pays(conv_problem("16x64x28x28 * 128x64x3x3 pad 1")));
}

}  // namespace
}  // namespace twiddle
