#include "apps/bench/pass_stages.h"

#include <gtest/gtest.h>

#include "framework/error.h"

namespace twiddle {
namespace {

// Two runs of a pass whose engine transforms x in two slices (5 ms, including 1 in padding and 2 in a transpose), then
// w (3, including 0.5 and 1), then multiplies (7) and transforms back in two slices (10, including 4 in a transpose and
// 2 in cropping).
const std::vector<Profiler::Entry> forward{{"layer", "forward: fft of x: pad", {0.6, 0.4, 0.6, 0.4}},
                                           {"layer", "forward: fft of x: fft", {1, 0.9, 1, 0.9}},
                                           {"layer", "forward: fft of x: transpose", {1.5, 0.5, 1.5, 0.5}},
                                           {"layer", "forward: fft of x", {3, 2, 3, 2}},
                                           {"layer", "forward: fft of w: pad", {0.5, 0.5}},
                                           {"layer", "forward: fft of w: fft", {1.5, 1.5}},
                                           {"layer", "forward: fft of w: transpose", {1, 1}},
                                           {"layer", "forward: fft of w", {3, 3}},
                                           {"layer", "forward: product", {4, 3, 4, 3}},
                                           {"layer", "forward: inverse: transpose", {2.5, 1.5, 2.5, 1.5}},
                                           {"layer", "forward: inverse: ifft", {3, 1, 3, 1}},
                                           {"layer", "forward: inverse: crop", {1.5, 0.5, 1.5, 0.5}},
                                           {"layer", "forward: inverse", {6, 4, 6, 4}},
                                           {"layer", "forward", {28, 28}}};

TEST(PassStages, SubtractsNestedStages) {
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

TEST(PassStages, NamesOperandsOfEachPass) {
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

TEST(PassStages, ReturnsMedianOfRuns) {
  const std::vector<Profiler::Entry> input{{"layer", "backward_input", {9, 30, 8}},
                                           {"layer", "backward_input: product", {1, 2, 20, 5, 2, 2}}};
  const PassStages stages = stages_of(ConvPass::backward_input, input, 3);
  EXPECT_DOUBLE_EQ(stages.whole, 9);
  EXPECT_DOUBLE_EQ(stages.product, 4);
  EXPECT_THROW(stages_of(ConvPass::backward_input, input, 4), Error);
}

}  // namespace
}  // namespace twiddle
