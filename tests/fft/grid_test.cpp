#include "fft/grid.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

// AlexNet's conv3: 13 points with a pad of 1 fit a transform of 14, since both halos share the same zeros.
TEST(Grid, TileCoversPlaneAndOnePad) {
  const ConvProblem problem = conv_problem("2x8x13x13 * 4x8x3x3 pad 1");
  EXPECT_EQ(least_height(problem), 14);
  const FrequencyGrid grid = whole_plane(problem, 14, 16);
  EXPECT_EQ(grid, (FrequencyGrid{14, 16, 1, 1, 13, 13}));
  EXPECT_EQ(grid.bins(), 14 * 9);
  EXPECT_EQ(to_string(grid), "14x16");
  EXPECT_THROW(whole_plane(problem, 13, 16), Error);
}

TEST(Grid, TileCoversOutputForWidePads) {
  EXPECT_EQ(least_height(conv_problem("1x1x4x4 * 1x1x3x3 pad 4")), 10);
}

TEST(Grid, TilesCoverTheOutput) {
  const FrequencyGrid grid = tiled(conv_problem("2x8x28x30 * 4x8x5x3 pad 2x1"), 16, 16);
  EXPECT_EQ(grid, (FrequencyGrid{16, 16, 3, 3, 12, 14}));  // 28 = 12 + 12 + 4, 30 = 14 + 14 + 2
  EXPECT_EQ(to_string(grid), "16x16 in 3x3 tiles");
  EXPECT_THROW(tiled(conv_problem("2x8x28x28 * 4x8x5x5"), 4, 16), Error);
}

TEST(Grid, SliceHasPlanesOfAllGroups) {
  const ConvProblem problem = conv_problem("6x4x9x8 * 10x2x3x2 pad 1x0 groups 2");
  const FrequencyGrid grid = whole_plane(problem, 10, 8);
  const Planes x = planes_of(problem, ConvOperand::x, grid, 2, 3);
  EXPECT_EQ(x.rows, 3);
  EXPECT_EQ(x.columns, 4);
  EXPECT_EQ(x.groups, 2);
  EXPECT_EQ(x.row_stride, 4 * 72);
  EXPECT_EQ(x.offset, 2 * 4 * 72);
  EXPECT_EQ(x.first_h, -1);
  EXPECT_EQ(x.window_h, 10);
  const Planes w = planes_of(problem, ConvOperand::w, grid);
  EXPECT_EQ(w.rows, 10);
  EXPECT_EQ(w.columns, 2);
  EXPECT_EQ(w.offset, 0);
  const Planes y = planes_of(problem, ConvOperand::y, grid, 2, 3);
  EXPECT_EQ(y.window_w, problem.out_width());
  EXPECT_EQ(y.row_stride, 10 * y.column_stride);
}

// One kernel per channel: kernels are stored contiguously, as channels are.
TEST(Grid, DepthwiseWeightsAreOneRow) {
  const ConvProblem problem = conv_problem("6x4x9x8 * 4x1x3x2 pad 1x0 groups 4");
  EXPECT_TRUE(is_depthwise(problem));
  EXPECT_FALSE(is_depthwise(conv_problem("6x4x9x8 * 8x1x3x2 pad 1x0 groups 4")));
  EXPECT_FALSE(is_depthwise(conv_problem("6x1x9x8 * 1x1x3x2 pad 1x0")));
  const Planes w = planes_of(problem, ConvOperand::w, whole_plane(problem, 10, 8));
  EXPECT_EQ(w.rows, 1);
  EXPECT_EQ(w.columns, 4);
  EXPECT_EQ(w.groups, 1);
  EXPECT_EQ(planes_of(problem, ConvOperand::x, whole_plane(problem, 10, 8)).groups, 1);
}

TEST(Grid, TapsMayWrapIntoCroppedRegion) {
  EXPECT_EQ(least_height(conv_problem("1x2x28x28 * 2x1x29x29 pad 14 groups 2")), 42);
  EXPECT_EQ(least_height(conv_problem("1x2x14x14 * 2x1x27x27 pad 13 groups 2")), 27);
  EXPECT_EQ(least_height(conv_problem("1x2x56x56 * 2x1x31x31 pad 15 groups 2")), 71);
}

}  // namespace
}  // namespace twiddle
