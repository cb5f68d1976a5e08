#include <numeric>

#include "tests/support/check_layer.h"
#include "tests/support/square_windows.h"

namespace twiddle {

namespace {

struct Means : SquareWindows {
  bool count_padding;

  // The outputs of x, and the gradient of x for given output gradients.
  void add(const std::vector<float>& x, const Shape& in, const std::vector<float>& grad_y, const Shape& out,
           std::vector<float>& y, std::vector<float>& grad_x) const {
    std::size_t at = 0;
    for_each(in, out, [&](std::int64_t top, std::int64_t left, const std::vector<std::size_t>& places) {
      const std::int64_t padded =
          (std::min(top + kernel, in[2] + pad) - top) * (std::min(left + kernel, in[3] + pad) - left);
      const float share = 1.0f / static_cast<float>(count_padding ? padded : static_cast<std::int64_t>(places.size()));
      for (const std::size_t place : places) {
        y[at] += x[place] * share;
        grad_x[place] += grad_y[at] * share;
      }
      ++at;
    });
  }
};

}  // namespace

TEST_P(EveryDevice, AvgPoolAveragesWindow) {
  EXPECT_EQ(run_layer(GetParam(), "avg_pool", {{"kernel", "2"}}, {1, 1, 2, 4}, {1, 5, -3, -1, 4, 2, -2, -4}),
            (std::vector<float>{3, -2.5f}));
}

TEST_P(EveryDevice, AvgPoolCountsPaddingByDefault) {
  const LayerOptions window{{"kernel", "2"}, {"stride", "2"}, {"pad", "1"}};
  expect_close(run_layer(GetParam(), "avg_pool", window, {1, 1, 2, 2}, {4, 8, 12, 16}), {1, 2, 3, 4});
  LayerOptions without = window;
  without.push_back({"count_padding", "false"});
  expect_close(run_layer(GetParam(), "avg_pool", without, {1, 1, 2, 2}, {4, 8, 12, 16}), {4, 8, 12, 16});
}

TEST_P(EveryDevice, AvgPoolIgnoresElementsBeyondPadding) {  // the last window holds one column alone
  expect_close(run_layer(GetParam(), "avg_pool", {{"kernel", "[1, 2]"}, {"stride", "2"}, {"rounding", "ceil"}},
                         {1, 1, 1, 3}, {2, 4, 7}),
               {3, 7});
  const auto means = [](const LayerOptions& window, const Shape& in, float first) {
    LayerOptions options = window;
    options.push_back({"rounding", "ceil"});
    std::vector<float> x(static_cast<std::size_t>(count_of(in)));
    std::iota(x.begin(), x.end(), first);
    return run_layer(GetParam(), "avg_pool", options, in, x);
  };
  expect_close(means({{"kernel", "[1, 2]"}}, {1, 1, 1, 5}, 1), {1.5f, 3.5f, 5});
  expect_close(means({{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {1, 1, 4, 4}, 1),
               {1.555556f, 3.333333f, 2, 6.333333f, 11, 6, 4.5f, 7.5f, 4});
  expect_close(means({{"kernel", "2"}, {"stride", "3"}}, {1, 1, 7, 7}, 0),
               {4, 7, 9.5f, 25, 28, 30.5f, 42.5f, 45.5f, 48});
}

TEST_P(EveryDevice, AvgPoolGradients) {
  const auto check = [&](const LayerOptions& options, const Shape& shape) {
    expect_gradients(GetParam(), "avg_pool", options, shape);
  };
  check({{"kernel", "2"}}, {2, 3, 6, 8});
  check({{"kernel", "2"}}, {1, 1, 7, 5});
  check({{"kernel", "3"}, {"stride", "2"}, {"rounding", "ceil"}}, {2, 2, 8, 10});
  check({{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {2, 2, 8, 9});
  check({{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}, {"count_padding", "false"}}, {2, 2, 8, 9});
  check({{"kernel", "[3, 2]"}, {"stride", "[1, 3]"}, {"pad", "[1, 0]"}}, {2, 2, 5, 8});
  check({{"kernel", "1"}}, {1, 2, 1, 1});
}

// Many small planes, a large one, long rows, windows that overlap or extend beyond the edge.
TEST_P(EveryDevice, AvgPoolMatchesReferenceOnAnyPlane) {
  const auto check = [&](const Means& window, const Shape& shape, const std::string& rounding = "floor") {
    SCOPED_TRACE(join(to_string(shape), ", kernel ", window.kernel, ", stride ", window.stride, ", pad ", window.pad));
    LayerUnderTest test(GetParam(), "avg_pool",
                        {{"kernel", join(window.kernel)},
                         {"stride", join(window.stride)},
                         {"pad", join(window.pad)},
                         {"count_padding", window.count_padding ? "true" : "false"},
                         {"rounding", rounding}},
                        {shape[1], shape[2], shape[3]});
    const Shape out = test.output_shape(shape[0]);
    const std::vector<float> x = whole_numbers(shape, 1), grad_y = whole_numbers(out, 2);
    std::vector<float> y(grad_y.size(), 0.0f), grad_x(x.size(), 0.0f);
    window.add(x, shape, grad_y, out, y, grad_x);
    const auto passes = test.forward_and_backward(shape, x, grad_y);
    expect_close(passes.y, y);
    expect_close(passes.grad_x, grad_x);
  };
  for (const bool count_padding : {true, false}) {
    check({3, 2, 1, count_padding}, {3, 1, 1, 1});
    check({3, 2, 1, count_padding}, {1, 2, 57, 59});
    check({3, 2, 1, count_padding}, {1, 2, 112, 111}, "ceil");
    check({2, 2, 1, count_padding}, {1, 700, 2, 3}, "ceil");
    check({3, 1, 1, count_padding}, {1, 1, 130, 101});
    check({3, 1, 1, count_padding}, {1, 3, 28, 28});
    check({7, 2, 3, count_padding}, {1, 2, 97, 300});
    check({5, 1, 2, count_padding}, {1, 3, 9, 8});
  }
  check({3, 2, 0, true}, {1, 5, 55, 55});
  check({3, 2, 0, true}, {2, 41, 13, 13});
  check({2, 2, 0, true}, {1, 3, 112, 112});
  check({2, 2, 0, true}, {1, 3, 113, 57}, "ceil");
  check({2, 5, 0, true}, {1, 3, 90, 61});
  check({7, 7, 0, true}, {1, 70, 7, 7});
  check({2, 2, 0, true}, {1, 2, 5, 8100});
  check({2, 2, 0, true}, {1, 2, 5, 12300});
  check({3, 2, 0, true}, {1, 2, 5, 4101});
}

TEST(AvgPool, SuggestsLargestKernelThatFits) {
  EXPECT_NE(layer_error("avg_pool", {{"kernel", "[1, 9]"}}, {3, 8, 8}).find("avg_pool: a kernel of 1x9 does not fit"),
            std::string::npos);
}

}  // namespace twiddle
