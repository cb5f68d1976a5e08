#include "tests/support/check_layer.h"
#include "tests/support/square_windows.h"

namespace twiddle {

namespace {

std::string error_for(const LayerOptions& options, const Shape& image) {
  return layer_error("max_pool", options, image);
}

Shape shape_for(const LayerOptions& options, const Shape& image) {
  return LayerUnderTest({}, "max_pool", options, image).layer->output_shape();
}

}  // namespace

TEST_P(EveryDevice, MaxPoolSelectsLargest) {
  EXPECT_EQ(run_layer(GetParam(), "max_pool", {{"kernel", "2"}}, {1, 1, 2, 4}, {1, 5, -3, -1, 4, 2, -2, -4}),
            (std::vector<float>{5, -1}));
}

TEST_P(EveryDevice, MaxPoolIgnoresPadding) {
  EXPECT_EQ(run_layer(GetParam(), "max_pool", {{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {1, 1, 3, 3},
                      {-9, -8, -7, -6, -5, -4, -3, -2, -1}),
            (std::vector<float>{-5, -4, -2, -1}));
}

TEST_P(EveryDevice, MaxPoolKeepsNaN) {
  for (const char* kernel : {"2", "3", "[2, 3]"}) {
    std::vector<float> x(8 * 8, 1);
    x[9] = NAN, x[10] = INFINITY;
    const std::vector<float> y =
        run_layer(GetParam(), "max_pool", {{"kernel", kernel}, {"stride", "2"}}, {1, 1, 8, 8}, x);
    EXPECT_TRUE(std::isnan(y[0])) << kernel;
    EXPECT_EQ(y.back(), 1) << kernel;
  }
}

TEST_P(EveryDevice, MaxPoolSendsGradientToFirstMaximum) {
  LayerUnderTest test(GetParam(), "max_pool", {{"kernel", "2"}}, {1, 2, 2});
  const Variable x(Tensor::filled(*test.ctx.stream, {1, 1, 2, 2}, 7), true);
  test.ctx.tape.backward(test.ctx, test.layer->forward(test.ctx, x));
  EXPECT_EQ(x.grad().to_vector(*test.ctx.stream), (std::vector<float>{1, 0, 0, 0}));
}

TEST_P(EveryDevice, MaxPoolSendsGradientToFirstNaN) {
  for (const char* kernel : {"2", "3"}) {
    const LayerOptions options{{"kernel", kernel}, {"stride", "2"}};
    LayerUnderTest test(GetParam(), "max_pool", options, {1, 3, 3});
    std::vector<float> first_nan(9, 0.0f);
    first_nan[1] = 5;
    EXPECT_EQ(test.forward_and_backward({1, 1, 3, 3}, {9, NAN, 1, 1, NAN, 1, 1, 1, 1}, {5}).grad_x, first_nan)
        << kernel;
  }
}

TEST_P(EveryDevice, MaxPoolGradients) {
  const GradientCheck distinct{.distinct = true};
  const auto check = [&](const LayerOptions& options, const Shape& shape) {
    expect_gradients(GetParam(), "max_pool", options, shape, distinct);
  };
  check({{"kernel", "2"}}, {2, 3, 6, 8});
  check({{"kernel", "2"}}, {1, 1, 7, 5});
  check({{"kernel", "3"}, {"stride", "2"}}, {2, 2, 9, 11});
  check({{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {2, 2, 8, 9});
  check({{"kernel", "3"}, {"stride", "2"}, {"rounding", "ceil"}}, {1, 2, 8, 10});
  check({{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {1, 1, 1, 1});
  check({{"kernel", "[3, 2]"}, {"stride", "[1, 3]"}, {"pad", "[1, 0]"}}, {2, 2, 5, 8});
  check({{"kernel", "1"}}, {1, 2, 1, 1});
}

// Many small planes, a large one, long rows, window sizes with and without a specialized kernel.
TEST_P(EveryDevice, MaxPoolMatchesReferenceOnAnyPlane) {
  const auto check = [&](const SquareWindows& window, const Shape& shape, const std::string& rounding = "floor") {
    SCOPED_TRACE(join(to_string(shape), ", kernel ", window.kernel, ", stride ", window.stride));
    LayerUnderTest test(GetParam(), "max_pool",
                        {{"kernel", join(window.kernel)},
                         {"stride", join(window.stride)},
                         {"pad", join(window.pad)},
                         {"rounding", rounding}},
                        {shape[1], shape[2], shape[3]});
    const Shape out = test.output_shape(shape[0]);
    const std::vector<float> x = whole_numbers(shape, 1), grad_y = whole_numbers(out, 2);
    std::vector<float> y, grad_x(x.size(), 0.0f);
    window.for_each(shape, out, [&](std::int64_t, std::int64_t, const std::vector<std::size_t>& places) {
      const std::size_t largest = *std::max_element(
          places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });  // the first
      grad_x[largest] += grad_y[y.size()];
      y.push_back(x[largest]);
    });
    EXPECT_EQ(test.forward(shape, x), y);  // without places for a backward pass
    const auto passes = test.forward_and_backward(shape, x, grad_y);
    EXPECT_EQ(passes.y, y);
    EXPECT_EQ(passes.grad_x, grad_x);
  };
  check({3, 2, 1}, {3, 1, 1, 1});
  check({3, 2, 0}, {1, 5, 55, 55});
  check({3, 2, 0}, {2, 41, 13, 13});
  check({2, 2, 0}, {1, 700, 2, 3}, "ceil");
  check({3, 2, 1}, {1, 2, 57, 59});
  check({3, 2, 1}, {1, 2, 112, 111}, "ceil");
  check({3, 1, 1}, {1, 1, 130, 101});
  check({2, 5, 0}, {1, 3, 90, 61});
  check({7, 2, 3}, {1, 2, 97, 300});
  check({2, 2, 0}, {1, 2, 5, 12300});
  check({3, 2, 0}, {1, 2, 5, 4101});
  check({5, 1, 2}, {1, 3, 9, 8});
  check({3, 3, 0}, {1, 3, 108, 110});
  check({3, 3, 0}, {2, 3, 16, 17}, "ceil");
}

TEST(MaxPool, RespectsRounding) {
  EXPECT_EQ(shape_for({{"kernel", "3"}, {"stride", "2"}}, {4, 6, 6}), (Shape{4, 2, 2}));
  EXPECT_EQ(shape_for({{"kernel", "3"}, {"stride", "2"}, {"rounding", "ceil"}}, {4, 6, 6}), (Shape{4, 3, 3}));
  EXPECT_EQ(shape_for({{"kernel", "3"}, {"stride", "2"}}, {64, 55, 55}), (Shape{64, 27, 27}));
  EXPECT_EQ(shape_for({{"kernel", "3"}, {"stride", "4"}, {"rounding", "ceil"}}, {1, 8, 10}), (Shape{1, 2, 3}));
  EXPECT_EQ(shape_for({{"kernel", "1"}, {"stride", "2"}, {"rounding", "ceil"}}, {1, 6, 7}), (Shape{1, 3, 4}));
  // The third window would start at 4, beyond the padded 2 + 1.
  EXPECT_EQ(shape_for({{"kernel", "2"}, {"stride", "2"}, {"pad", "1"}, {"rounding", "ceil"}}, {1, 3, 3}),
            (Shape{1, 2, 2}));
}

TEST(MaxPool, KeepsIndicesForTrainingAlone) {
  LayerUnderTest test({}, "max_pool", {{"kernel", "2"}}, {1, 64, 64});
  const Variable x(Tensor::filled(*test.ctx.stream, {1, 1, 64, 64}, 1), true);
  test.ctx.tape.set_recording(false);
  const std::size_t before = test.ctx.stream->memory().in_use;
  const Variable y = test.layer->forward(test.ctx, x);
  EXPECT_EQ(test.ctx.stream->memory().in_use - before, y.value().bytes());
}

TEST(MaxPool, SuggestsLargestKernelThatFits) {
  EXPECT_NE(error_for({{"kernel", "3"}}, {256, 2, 2})
                .find("a kernel of 3x3 does not fit its input 256x2x2 with pad 0; "
                      "at most 2x2 fits"),
            std::string::npos);
  EXPECT_NE(error_for({{"kernel", "3"}, {"pad", "2"}}, {1, 9, 9}).find("at most 1 fits"), std::string::npos);
  EXPECT_NE(error_for({{"kernel", "2"}}, {100}).find("channels x height x width, and gets 100"), std::string::npos);
  EXPECT_NE(error_for({}, {1, 9, 9}).find("kernel"), std::string::npos);
  EXPECT_NE(error_for({{"kernel", "2"}, {"stride", "0"}}, {1, 9, 9}).find("stride"), std::string::npos);
  EXPECT_NE(error_for({{"kernel", "2"}, {"rounding", "up"}}, {1, 9, 9}).find("ceil"), std::string::npos);
  EXPECT_NE(error_for({{"kernel", "2"}, {"kernal", "3"}}, {1, 9, 9}).find("kernal"), std::string::npos);
}

}  // namespace twiddle
