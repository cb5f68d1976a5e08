#include "layers/conv/kernels/cuda/implicit_gemm/patches.h"

#include <gtest/gtest.h>

#include "tests/support/conv_problem.h"

namespace twiddle::implicit_gemm {

namespace {

// Every element of y is a position of one tile, and the input that a tap reads there is in the tile's patch, where
// copies put that element of x.
void expect_right(const ConvProblem& c, int positions, int panels) {
  const Patches p = patches_of(c, positions, panels);
  std::vector<int> found(static_cast<std::size_t>(c.batch) * p.places());
  for (int index = 0; index < c.batch * p.tiles_an_image(); ++index) {
    const Tile tile = tile_of(p, index);
    for (int i = 0; i < positions; ++i) {
      const Position at = position_of(p, tile, i);
      ASSERT_GE(at.window, 0);
      ASSERT_LT(at.window + offset_of_tap(p, p.taps() - 1), p.floats());
      if (at.place < 0) continue;
      ++found[static_cast<std::size_t>(tile.image * p.places() + at.place)];
      const int row = at.place / p.out_w, column = at.place % p.out_w;
      for (const int tap : {0, p.taps() / 2, p.taps() - 1}) {
        const int kernel_row = tap / c.kernel_w % c.kernel_h, kernel_column = tap % c.kernel_w;
        const int y = row * c.stride_h - c.pad_h + kernel_row * c.dilation;
        const int x = column * c.stride_w - c.pad_w + kernel_column * c.dilation;
        const int word = at.window + offset_of_tap(p, tap), line = word / p.pitch;
        ASSERT_TRUE(!p.by_fours || tile.x % 4 == 0);
        ASSERT_EQ(line / p.rows, tap / (c.kernel_h * c.kernel_w));
        ASSERT_EQ(tile.y + line % p.rows, y);
        ASSERT_EQ(tile.x + word % p.pitch, x);
      }
    }
  }
  for (const int times : found) ASSERT_EQ(times, 1);
}

}  // namespace

TEST(ImplicitGemmPatches, HoldInputsOfEveryTap) {
  for (const ConvProblem& problem :
       conv_problems({"2x3x67x61 * 96x3x11x11 stride 4 pad 2", "3x3x37x41 * 70x3x5x5 stride 2x3 pad 1x2",
                      "2x3x30x300 * 33x3x3x3 pad 1", "1x1x1x1 * 1x1x1x1", "2x5x19x23 * 10x5x3x4 pad 2 dilation 2",
                      "1x2x64x64 * 4x2x3x3 pad 1", "2x3x4x4 * 5x3x3x3 pad 4"}))
    for (const int positions : {128, 256})
      for (const int panels : {1, 2, 3, 7}) {
        SCOPED_TRACE(to_string(problem) + " in " + std::to_string(panels));
        expect_right(problem, positions, panels);
      }
}

}  // namespace twiddle::implicit_gemm
