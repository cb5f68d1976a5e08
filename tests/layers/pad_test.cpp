#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, PadAddsZeros) {
  EXPECT_EQ(run_layer(GetParam(), "pad", {{"size", "[1, 0, 2, 1]"}}, {1, 1, 1, 2}, {1, 2}),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 1, 2, 0}));
  EXPECT_EQ(run_layer(GetParam(), "pad", {{"size", "[0, 1]"}}, {2, 1, 1, 2}, {1, 2, 3, 4}),
            (std::vector<float>{0, 1, 2, 0, 0, 3, 4, 0}));
}

TEST_P(EveryDevice, PadMirrorsWithoutRepeatingTheBorder) {
  EXPECT_EQ(run_layer(GetParam(), "pad", {{"size", "[0, 0, 2, 1]"}, {"mode", "mirror"}}, {1, 1, 1, 3}, {1, 2, 3}),
            (std::vector<float>{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(run_layer(GetParam(), "pad", {{"size", "1"}, {"mode", "mirror"}}, {1, 1, 2, 2}, {1, 2, 3, 4}),
            (std::vector<float>{4, 3, 4, 3, 2, 1, 2, 1, 4, 3, 4, 3, 2, 1, 2, 1}));
}

TEST_P(EveryDevice, PadSumsGradientsOfMirroredElements) {
  LayerUnderTest test(GetParam(), "pad", {{"size", "[0, 2]"}, {"mode", "mirror"}}, {1, 1, 3});
  // The row 1 2 3 becomes 3 2 1 2 3 2 1.
  EXPECT_EQ(test.forward_and_backward({1, 1, 1, 3}, {1, 2, 3}, {1, 10, 100, 1000, 10000, 2, 3}).grad_x,
            (std::vector<float>{103, 1012, 10001}));
}

TEST_P(EveryDevice, PadGradients) {
  expect_gradients(GetParam(), "pad", {{"size", "[1, 2, 3, 0]"}}, {2, 3, 4, 5});
  expect_gradients(GetParam(), "pad", {{"size", "[1, 2, 3, 4]"}, {"mode", "mirror"}}, {2, 3, 4, 5});
}

TEST(Pad, DescribesItself) {
  EXPECT_EQ(LayerUnderTest({}, "pad", {{"size", "2"}}, {1, 5, 5}).layer->describe(), "2");
  EXPECT_EQ(LayerUnderTest({}, "pad", {{"size", "[0, 1, 0, 1]"}, {"mode", "mirror"}}, {1, 5, 5}).layer->describe(),
            "top 0, bottom 1, left 0, right 1, mirror");
}

TEST(Pad, ReportsInvalidSizes) {
  EXPECT_NE(layer_error("pad", {{"size", "4"}, {"mode", "mirror"}}, {1, 9, 4}).find("at most 8 rows and 3 columns"),
            std::string::npos);
  EXPECT_NE(layer_error("pad", {{"size", "[1, 2, 3]"}}, {1, 9, 9}).find("found a list of 3"), std::string::npos);
  EXPECT_NE(layer_error("pad", {{"size", "-1"}}, {1, 9, 9}).find("'size' must be a whole number from 0"),
            std::string::npos);
  EXPECT_NE(layer_error("pad", {}, {1, 9, 9}).find("'size'"), std::string::npos);
  EXPECT_NE(layer_error("pad", {{"size", "1"}}, {9}).find("channels x height x width"), std::string::npos);
}

}  // namespace twiddle
