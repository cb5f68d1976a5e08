#include "layers/conv/kernels/cuda/tap_shifts/tiling.h"

#include <gtest/gtest.h>

#include "tests/support/conv_problem.h"

namespace twiddle::tap_shifts {

namespace {

// Every element of y is in one strip of one tile, whose patch holds the inputs of its taps.
void expect_right(const Tiling& t) {
  std::vector<int> found(static_cast<std::size_t>(t.batch) * t.out_h * t.out_w);
  for (int tile = 0; tile < t.tiles(); ++tile) {
    const Origin at = origin_of(t, tile);
    for (int strip = 0; strip < strips; ++strip)
      for (int row = 0; row < t.rows; ++row)
        for (int column = 0; column < octet; ++column) {
          const int in_row = t.row_of_strip(strip) + row, in_column = t.column_of_strip(strip) + column;
          ASSERT_LT((in_row + side - 1) * t.pitch() + in_column + side - 1, t.pixels());
          ASSERT_LT(in_column + side - 1, t.pitch());
          const int y = at.row + in_row, x = at.column + in_column;
          if (y < t.out_h && x < t.out_w) ++found[static_cast<std::size_t>((at.image * t.out_h + y) * t.out_w + x)];
        }
  }
  for (const int times : found) ASSERT_EQ(times, 1);
}

}  // namespace

TEST(TapShiftsTiling, CoversEveryPositionOnce) {
  for (const ConvProblem& problem : conv_problems({"3x4x37x45 * 7x4x3x3 pad 1", "2x3x3x3 * 4x3x3x3",
                                                   "1x2x224x14 * 4x2x3x3 pad 2", "2x1x28x57 * 1x1x3x3 pad 0x1"}))
    for (const int rows : {short_strip, tall_strip})
      for (const int across : {1, 2}) {
        SCOPED_TRACE(to_string(problem) + ", " + std::to_string(rows) + " rows, " + std::to_string(across));
        expect_right(tiling_by(problem, rows, across));
      }
}

TEST(TapShiftsTiling, WastesFewPositions) {
  for (const char* const problem : {"1x1x224x224 * 1x1x3x3 pad 1", "1x1x112x112 * 1x1x3x3 pad 1"}) {
    const Tiling t = best_tiling(conv_problem(problem), true);
    EXPECT_EQ(t.tiles() * t.positions(), t.out_h * t.out_w) << problem;
  }
}

}  // namespace twiddle::tap_shifts
