// Compares batch norm in training with sums in double, for shapes whose channels fit into the shared memory of one
// block of a GPU, of a cluster, of a cluster in which some blocks have no image, and of none.
#include <algorithm>
#include <cmath>

#include "tests/support/check_layer.h"
#include "tests/support/noise.h"

namespace twiddle {

namespace {

struct Kind {
  bool relu, sum;  // what batch norm fuses
};

struct Inputs {
  std::vector<float> x, other, grad_y, scale, bias;
  explicit Inputs(const Shape& shape)
      : x(noise(count_of(shape), 1)),
        other(noise(count_of(shape), 2)),
        grad_y(noise(count_of(shape), 3)),
        scale(noise(shape[1], 4)),
        bias(noise(shape[1], 5)) {
    for (float& value : x) value = 3 * value + 10;
  }
};

struct Outputs {
  std::vector<float> y, grad_x, grad_other, grad_scale, grad_bias, running_mean, running_var;
  bool operator==(const Outputs&) const = default;
};

Outputs train(Device device, const Shape& shape, const Kind& kind, const Inputs& in) {
  LayerUnderTest test(device, "batch_norm", {{"momentum", "1"}}, Shape(shape.begin() + 1, shape.end()));
  test.set("scale", in.scale);
  test.set("bias", in.bias);
  if (kind.relu) {
    EXPECT_TRUE(test.layer->take_over_relu());
  }
  Context& ctx = test.ctx;
  const auto tensor = [&](const std::vector<float>& values) { return Tensor::from(*ctx.stream, shape, values); };
  const Variable x(tensor(in.x), true), other(tensor(in.other), true);
  const Variable y = kind.sum ? test.layer->forward_with_sum(ctx, x, other) : test.layer->forward(ctx, x);
  const Variable objective =
      ctx.tape.record("objective", Tensor::filled(*ctx.stream, {1}, 0), {y},
                      [&](Context& backward_ctx, const Tensor&) { y.add_grad(backward_ctx, tensor(in.grad_y)); });
  ctx.tape.backward(ctx, objective);
  const auto values = [&](const Tensor& of) { return of.to_vector(*ctx.stream); };
  return {values(y.value()),
          values(x.grad()),
          kind.sum ? values(other.grad()) : std::vector<float>{},
          values(test.parameter("scale").variable.grad()),
          values(test.parameter("bias").variable.grad()),
          test.get("running_mean"),
          test.get("running_var")};
}

// The ReLU's mask is read from `y`: near zero, it depends on rounding.
Outputs in_double(const Shape& shape, const Kind& kind, const Inputs& in, const std::vector<float>& y) {
  const auto batch = static_cast<std::size_t>(shape[0]), channels = static_cast<std::size_t>(shape[1]);
  const std::size_t inner = in.x.size() / batch / channels;
  const auto count = static_cast<double>(batch * inner);
  Outputs out{in.x, in.x, {}, in.scale, in.scale, in.scale, in.scale};
  if (kind.sum) out.grad_other = in.x;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto each = [&](const auto& work) {
      for (std::size_t i = 0; i < batch * inner; ++i) work((i / inner * channels + channel) * inner + i % inner);
    };
    double mean = 0, squares = 0, sum = 0, product = 0;
    each([&](std::size_t i) { mean += in.x[i] / count; });
    each([&](std::size_t i) { squares += (in.x[i] - mean) * (in.x[i] - mean); });
    const double inverse = 1 / std::sqrt(squares / count + 1e-5), factor = inverse * in.scale[channel];
    const auto gradient = [&](std::size_t i) { return kind.relu && y[i] <= 0 ? 0.0 : double(in.grad_y[i]); };
    each([&](std::size_t i) {
      const double value = (in.x[i] - mean) * factor + in.bias[channel] + (kind.sum ? in.other[i] : 0);
      out.y[i] = static_cast<float>(kind.relu ? std::max(value, 0.0) : value);
      sum += gradient(i);
      product += gradient(i) * (in.x[i] - mean) * inverse;
    });
    each([&](std::size_t i) {
      const double normalized = (in.x[i] - mean) * inverse;
      out.grad_x[i] = static_cast<float>(factor * (gradient(i) - sum / count - normalized * product / count));
      if (kind.sum) out.grad_other[i] = static_cast<float>(gradient(i));
    });
    out.grad_scale[channel] = static_cast<float>(product), out.grad_bias[channel] = static_cast<float>(sum);
    out.running_mean[channel] = static_cast<float>(mean);
    out.running_var[channel] = static_cast<float>(squares / (count - 1));
  }
  return out;
}

void expect_equal(const Outputs& got, const Outputs& expected) {
  EXPECT_LE(relative_error(got.y, expected.y), 1e-5);
  EXPECT_LE(relative_error(got.grad_x, expected.grad_x), 1e-5);
  EXPECT_EQ(got.grad_other, expected.grad_other);
  EXPECT_LE(relative_error(got.grad_scale, expected.grad_scale), 1e-5);
  EXPECT_LE(relative_error(got.grad_bias, expected.grad_bias), 1e-5);
  EXPECT_LE(relative_error(got.running_mean, expected.running_mean), 1e-6);
  EXPECT_LE(relative_error(got.running_var, expected.running_var), 1e-5);
}

}  // namespace

TEST_P(EveryDevice, BatchNormMatchesDoubleInEveryKernel) {
  for (const Shape& shape : {Shape{64, 3, 28, 28}, Shape{64, 2, 56, 56}, Shape{17, 2, 10, 10}, Shape{5, 3, 7, 7},
                             Shape{2, 150, 14, 14}, Shape{1, 3, 6, 6}, Shape{3, 2, 200, 200}, Shape{2, 2, 260, 260}}) {
    const Inputs in(shape);
    for (const Kind& kind : {Kind{false, false}, Kind{true, false}, Kind{false, true}, Kind{true, true}}) {
      SCOPED_TRACE(testing::Message() << to_string(shape) << (kind.sum ? " sum" : "") << (kind.relu ? " relu" : ""));
      const Outputs once = train(GetParam(), shape, kind, in);
      expect_equal(once, in_double(shape, kind, in, once.y));
      EXPECT_TRUE(once == train(GetParam(), shape, kind, in)) << "results differ the second time";
    }
  }
}

}  // namespace twiddle
