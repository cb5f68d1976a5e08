#include "layers/branches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/tuner.h"
#include "tests/support/check_layer.h"
#include "tests/support/noise.h"

namespace twiddle {

namespace {

struct Branched {
  Context ctx;
  ConvTuner convolutions;
  std::unique_ptr<Branches> layer;

  // Each path is a row of kinds without options.
  Branched(Device device, Join join, const Shape& image, const std::vector<std::vector<std::string>>& paths)
      : ctx(device), convolutions(make_conv_engines(device), ConvPolicy{}) {
    std::vector<Branches::Path> built;
    for (const std::vector<std::string>& kinds : paths) {
      Branches::Path path{"path " + std::to_string(built.size()), Sequential(image)};
      for (const std::string& kind : kinds) {
        Diagnostics diagnostics;
        Params params({}, kind, diagnostics);
        const Shape& input = path.layers.output_shape();
        path.layers.add(kind, builtin_layers().make(kind, Site{kind, input, convolutions}, params));
      }
      built.push_back(std::move(path));
    }
    layer = std::make_unique<Branches>("joined", join, std::move(built));
    for (const Sequential* path : layer->paths()) path->initialize(ctx);
  }

  struct Passes {
    Shape shape;
    std::vector<float> y, grad_x;
  };
  Passes run(const Shape& shape, const std::vector<float>& values, const std::vector<float>& grad_y) {
    const Variable x(Tensor::from(*ctx.stream, shape, values), true);
    const Variable y = layer->forward(ctx, x);
    x.drop_value();  // as a network does
    const Passes passes{y.value().shape(), y.value().to_vector(*ctx.stream), {}};
    const Tensor gradient = Tensor::from(*ctx.stream, y.value().shape(), grad_y);
    const Variable objective =
        ctx.tape.record("objective", Tensor::filled(*ctx.stream, {1}, 0), {y},
                        [y, gradient](Context& back, const Tensor&) { y.add_grad(back, gradient); });
    ctx.tape.backward(ctx, objective);
    return {passes.shape, passes.y, x.grad().to_vector(*ctx.stream)};
  }
};

const std::vector<std::vector<std::string>> three_paths{{}, {"tanh"}, {"sigmoid"}};

struct Factors {
  double x, t, s;  // what the three paths give
  explicit Factors(float value) : x(value), t(std::tanh(value)), s(1 / (1 + std::exp(-double(value)))) {}
  double slope_t() const { return 1 - t * t; }
  double slope_s() const { return s * (1 - s); }
};

const Shape small{2, 3, 2, 2};
const std::vector<float> some_values = [] {
  std::vector<float> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.2f * static_cast<float>(i) - 2.1f;
  return values;
}();

}  // namespace

TEST_P(EveryDevice, BranchesAdd) {
  Branched net(GetParam(), Join::add, {3, 2, 2}, three_paths);
  const std::vector<float> grad_y = whole_numbers(small, 1);
  const auto [shape, y, grad_x] = net.run(small, some_values, grad_y);
  EXPECT_EQ(shape, small);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Factors at(some_values[i]);
    EXPECT_NEAR(y[i], at.x + at.t + at.s, 1e-5);
    EXPECT_NEAR(grad_x[i], grad_y[i] * (1 + at.slope_t() + at.slope_s()), 1e-4);
  }
}

TEST_P(EveryDevice, BranchesFuseReluIntoSum) {
  Branched net(GetParam(), Join::add, {3, 2, 2}, three_paths);
  ASSERT_TRUE(net.layer->take_over_relu());
  const std::vector<float> grad_y = whole_numbers(small, 1);
  const auto [shape, y, grad_x] = net.run(small, some_values, grad_y);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Factors at(some_values[i]);
    const double sum = at.x + at.t + at.s;
    EXPECT_NEAR(y[i], std::max(sum, 0.0), 1e-5);
    EXPECT_NEAR(grad_x[i], sum > 0 ? grad_y[i] * (1 + at.slope_t() + at.slope_s()) : 0, 1e-4);
  }
}

TEST_P(EveryDevice, BranchesMultiply) {
  Branched net(GetParam(), Join::multiply, {3, 2, 2}, three_paths);
  EXPECT_FALSE(net.layer->take_over_relu());
  const std::vector<float> grad_y = whole_numbers(small, 2);
  const auto [shape, y, grad_x] = net.run(small, some_values, grad_y);
  EXPECT_EQ(shape, small);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Factors at(some_values[i]);
    EXPECT_NEAR(y[i], at.x * at.t * at.s, 1e-5);
    EXPECT_NEAR(grad_x[i], grad_y[i] * (at.t * at.s + at.x * at.slope_t() * at.s + at.x * at.t * at.slope_s()), 1e-4);
  }
}

TEST_P(EveryDevice, BranchesConcatenateChannels) {
  // global_avg_pool gives 3 values per image, flatten 12.
  Branched net(GetParam(), Join::concat, {3, 2, 2}, {{"global_avg_pool"}, {"flatten"}, {"tanh", "flatten"}});
  const std::vector<float> grad_y = whole_numbers({2, 27}, 3);
  const auto [shape, y, grad_x] = net.run(small, some_values, grad_y);
  ASSERT_EQ(shape, (Shape{2, 27}));
  for (std::size_t image = 0; image < 2; ++image)
    for (std::size_t i = 0; i < 12; ++i) {
      const float* row = y.data() + 27 * image;
      const float* grad = grad_y.data() + 27 * image;
      const Factors at(some_values[12 * image + i]);
      EXPECT_FLOAT_EQ(row[3 + i], static_cast<float>(at.x));
      EXPECT_NEAR(row[15 + i], at.t, 1e-6);
      EXPECT_NEAR(grad_x[12 * image + i], grad[i / 4] / 4 + grad[3 + i] + grad[15 + i] * at.slope_t(), 1e-5);
    }
  for (std::size_t plane = 0; plane < 6; ++plane) {
    const float* first = &some_values[4 * plane];
    EXPECT_NEAR(y[27 * (plane / 3) + plane % 3], std::accumulate(first, first + 4, 0.f) / 4, 1e-6);
  }
}

// For the layers of their paths that are not skipped for such a batch.
TEST_P(EveryDevice, BranchesRunWithoutRows) {
  for (const Join join : {Join::add, Join::concat, Join::multiply}) {
    Branched net(GetParam(), join, {3, 2, 2}, three_paths);
    const auto [shape, y, grad_x] = net.run({0, 3, 2, 2}, {}, {});
    EXPECT_EQ(shape, (Shape{0, join == Join::concat ? 9 : 3, 2, 2}));
    EXPECT_TRUE(grad_x.empty());
  }
}

TEST_P(EveryDevice, BranchesNest) {
  Branched net(GetParam(), Join::add, {3, 2, 2}, {{}, {}});
  std::vector<Branches::Path> outer;
  outer.push_back({"inside", Sequential(Shape{3, 2, 2})});
  outer[0].layers.add("parallel", std::move(net.layer));
  outer.push_back({"other", Sequential(Shape{3, 2, 2})});
  net.layer = std::make_unique<Branches>("outer", Join::multiply, std::move(outer));
  const auto [shape, y, grad_x] = net.run(small, some_values, std::vector<float>(24, 1));
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], 2 * some_values[i] * some_values[i], 1e-5);
    EXPECT_NEAR(grad_x[i], 4 * some_values[i], 1e-5);
  }
}

TEST(Branches, ReportMismatchedShapes) {
  const auto complaint = [](Join join) -> std::string {
    try {
      Branched(Device{}, join, {3, 4, 4}, {{}, {"global_avg_pool"}});
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  for (const Join join : {Join::add, Join::multiply, Join::concat}) {
    const std::string text = complaint(join);
    EXPECT_NE(text.find("'path 0' gives 3x4x4, 'path 1' gives 3"), std::string::npos) << text;
  }
}

TEST(Branches, FindLayerOfBadValue) {
  Branched net(Device{}, Join::multiply, {1}, {{}, {"tanh", "sigmoid"}});
  Sequential layers(Shape{1});
  layers.add("parallel", std::move(net.layer));
  const auto first_bad = [&](float x) {
    return layers.first_bad_layer(net.ctx, Variable(Tensor::filled(*net.ctx.stream, {1, 1}, x)));
  };
  EXPECT_EQ(first_bad(1), "");
  EXPECT_EQ(first_bad(NAN), "tanh");
  EXPECT_EQ(first_bad(INFINITY), "joined");  // infinity in the input itself, which no layer of a path gives
}

// A batch norm at the end of a path adds the other path's output itself, and applies the ReLU after the sum.
TEST_P(EveryDevice, BranchesFuseSumIntoBatchNorm) {
  for (const bool relu : {false, true})
    for (const bool twice : {false, true}) {  // the other path is another batch norm, or the input itself
      const std::vector<std::string> other =
          twice ? std::vector<std::string>{"batch_norm"} : std::vector<std::string>{};
      Branched net(GetParam(), Join::add, {3, 2, 2}, {{"batch_norm"}, other});
      LayerUnderTest norm(GetParam(), "batch_norm", {}, {3, 2, 2});
      if (relu) net.layer->take_over_relu();
      EXPECT_EQ(net.layer->describe(), join("add of 2 paths", relu ? ", relu" : "", ", done by 'batch_norm'"));
      const std::vector<float> x = noise(count_of(small), 1);
      std::vector<float> gradient = noise(count_of(small), 2), expected = norm.forward(small, x);
      const auto [shape, y, grad_x] = net.run(small, x, gradient);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] += twice ? expected[i] : x[i];
        if (relu && expected[i] <= 0) expected[i] = gradient[i] = 0;
      }
      expect_close(y, expected);
      std::vector<float> expected_grad_x = norm.forward_and_backward(small, x, gradient).grad_x;
      for (std::size_t i = 0; i < gradient.size(); ++i) expected_grad_x[i] += twice ? expected_grad_x[i] : gradient[i];
      expect_close(grad_x, expected_grad_x);
    }
}

TEST_P(EveryDevice, BranchesFuseSumIntoBatchNormInEvaluation) {
  Branched net(GetParam(), Join::add, {3, 2, 2}, {{}, {"batch_norm"}});
  ASSERT_TRUE(net.layer->take_over_relu());
  const EvaluationMode evaluation(net.ctx);
  const Variable y = net.layer->forward(net.ctx, Variable(Tensor::from(*net.ctx.stream, small, some_values)));
  std::vector<float> expected;  // mean 0 and variance 1 are its averages
  for (const float value : some_values) expected.push_back(std::max(value / std::sqrt(1 + 1e-5f) + value, 0.0f));
  expect_close(y.value().to_vector(*net.ctx.stream), expected);
}

}  // namespace twiddle
