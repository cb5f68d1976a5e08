#include "apps/pass_stages.h"

#include <gtest/gtest.h>

#include "framework/error.h"

namespace twiddle {
namespace {

// Two runs of a pass whose engine transforms x in two pieces (of 5 ms 1 in padding, 2 in a transpose), then w (of 3 0.5
// and 1), then multiplies (7) and transforms back in two pieces (of 10 4 in a transpose, 2 in cropping).
const std::vector<Profiler::Entry> forward{
    {"layer", "forward", {28, 28}},
    {"layer", "forward: pad", {0.6, 0.4, 0.5, 0.6, 0.4, 0.5}},
    {"layer", "forward: fft", {1, 0.9, 1.5, 1, 0.9, 1.5}},
    {"layer", "forward: transpose", {1.5, 0.5, 1, 2.5, 1.5, 1.5, 0.5, 1, 2.5, 1.5}},
    {"layer", "forward: fft of x", {5, 5}},
    {"layer", "forward: fft of w", {3, 3}},
    {"layer", "forward: product", {7, 7}},
    {"layer", "forward: ifft", {3, 1, 3, 1}},
    {"layer", "forward: crop", {1.5, 0.5, 1.5, 0.5}},
    {"layer", "forward: inverse", {10, 10}}};

TEST(PassStages, TakesPartsOutOfTheWhole) {
  const PassStages stages = stages_of(ConvPass::forward, forward, 2);
  EXPECT_DOUBLE_EQ(stages.fft_a, 3 - 1 - 0.5);  // A is w
  EXPECT_DOUBLE_EQ(stages.transpose_a, 1);
  EXPECT_DOUBLE_EQ(stages.fft_b, 5 - 2 - 1);
  EXPECT_DOUBLE_EQ(stages.transpose_b, 2);
  EXPECT_DOUBLE_EQ(stages.product, 7);
  EXPECT_DOUBLE_EQ(stages.transpose_c, 4);
  EXPECT_DOUBLE_EQ(stages.ifft_c, 10 - 4 - 2);
  EXPECT_DOUBLE_EQ(stages.padding, 1 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(stages.rest, 28 - 5 - 3 - 7 - 10);
  EXPECT_DOUBLE_EQ(stages.whole, 28);
}

TEST(PassStages, KnowsWhatEachPassReads) {
  const std::vector<Profiler::Entry> weight{{"layer", "backward_weight", {10}},
                                            {"layer", "backward_weight: fft of y", {1}},
                                            {"layer", "backward_weight: fft of x", {2}},
                                            {"layer", "backward_weight: product", {3}},
                                            {"layer", "backward_weight: inverse", {4}}};
  const PassStages stages = stages_of(ConvPass::backward_weight, weight, 1);
  EXPECT_DOUBLE_EQ(stages.fft_a, 2);
  EXPECT_DOUBLE_EQ(stages.fft_b, 1);
  EXPECT_DOUBLE_EQ(stages.ifft_c, 4);
  EXPECT_DOUBLE_EQ(stages.transpose_c, 0);
}

TEST(PassStages, RefusesSlicesThatItCannotTellApart) {
  std::vector<Profiler::Entry> sliced = forward;
  sliced[4].milliseconds = {5, 5, 5, 5};
  EXPECT_THROW(stages_of(ConvPass::forward, sliced, 2), Error);
}

}  // namespace
}  // namespace twiddle
