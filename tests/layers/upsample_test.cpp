#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, UpsampleRepeatsEachPixel) {
  EXPECT_EQ(run_layer(GetParam(), "upsample", {{"factor", "[2, 3]"}}, {1, 1, 1, 2}, {1, 2}),
            (std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
}

TEST_P(EveryDevice, UpsampleRepeatsInfinity) {
  EXPECT_EQ(run_layer(GetParam(), "upsample", {{"factor", "[1, 2]"}}, {1, 1, 1, 2}, {INFINITY, 1}),
            (std::vector<float>{INFINITY, INFINITY, 1, 1}));
}

// Output centers are a quarter of a pixel off the input centers; beyond the first and last center only the border pixel
// counts.
TEST_P(EveryDevice, UpsampleInterpolatesNeighbors) {
  expect_close(run_layer(GetParam(), "upsample", {{"mode", "bilinear"}}, {1, 1, 1, 2}, {0, 4}),
               {0, 1, 3, 4, 0, 1, 3, 4});
  expect_close(run_layer(GetParam(), "upsample", {{"mode", "bilinear"}, {"factor", "[3, 1]"}}, {1, 1, 2, 1}, {0, 3}),
               {0, 0, 1, 2, 3, 3});
}

TEST_P(EveryDevice, UpsampleGradients) {
  for (const char* mode : {"nearest", "bilinear"}) {
    expect_gradients(GetParam(), "upsample", {{"mode", mode}}, {2, 3, 4, 5});
    expect_gradients(GetParam(), "upsample", {{"mode", mode}}, {1, 2, 9, 5});
    expect_gradients(GetParam(), "upsample", {{"mode", mode}, {"factor", "[1, 5]"}}, {2, 2, 3, 2});
    expect_gradients(GetParam(), "upsample", {{"mode", mode}, {"factor", "3"}}, {2, 2, 1, 3});
  }
}

TEST(Upsample, DescribesItself) {
  EXPECT_EQ(LayerUnderTest({}, "upsample", {{"mode", "bilinear"}}, {1, 5, 5}).layer->describe(), "bilinear, factor 2");
}

TEST(Upsample, RequiresPlanes) {
  EXPECT_NE(layer_error("upsample", {}, {9}).find("channels x height x width"), std::string::npos);
}

}  // namespace twiddle
