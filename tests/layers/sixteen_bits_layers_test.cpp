// Layers that read and write 16 bits against the same layers in f32: same operands, which 16 bits hold exactly, and one
// rounding of each result.
#include <cmath>
#include <limits>

#include "framework/tensor_ops.h"
#include "tests/support/check_layer.h"
#include "tests/support/noise.h"

namespace twiddle {

namespace {

struct LayerCase {
  const char* kind;
  LayerOptions options;
  Shape shape;
  bool relu = false, sum = false;  // what batch norm fuses
  bool frozen = false;
};

std::ostream& operator<<(std::ostream& out, const LayerCase& layer) {
  out << layer.kind << " of " << to_string(layer.shape);
  for (const auto& [key, value] : layer.options) out << ", " << key << " " << value;
  return out << (layer.sum ? ", sum" : "") << (layer.relu ? ", relu" : "") << (layer.frozen ? ", frozen" : "");
}

struct PassResults {
  std::vector<Tensor> activations;  // y and the gradients of inputs
  std::vector<std::vector<float>> parameters;
};

class LayerInType {
 public:
  LayerInType(Device device, const LayerCase& layer)
      : layer_(layer), test_(device, layer.kind, layer.options, {layer.shape.begin() + 1, layer.shape.end()}) {
    EXPECT_TRUE(test_.layer->takes_16_bits());
    EXPECT_EQ(layer.relu, layer.relu && test_.layer->take_over_relu());
    std::uint64_t seed = 10;
    for (Parameter& parameter : test_.layer->parameters()) {
      std::vector<float> values = noise(count_of(parameter.shape), seed++);
      if (!parameter.trainable)
        for (float& value : values) value = std::abs(value) + 0.5f;
      parameter.variable.value() = Tensor::from(stream(), parameter.shape, values);
      parameter.frozen = layer.frozen;
    }
  }

  // Operands are rounded to bf16 and f16, and then have `type`.
  PassResults run(DType type) {
    const auto operand = [&](const Shape& shape, std::uint64_t seed) {
      Tensor values = Tensor::from(stream(), shape, noise(count_of(shape), seed));
      for (const DType each : {DType::bf16, DType::f16, type}) values = cast(stream(), values, each);
      return values;
    };
    const Variable x(operand(layer_.shape, 1), true), other(operand(layer_.shape, 2), true);
    const Variable y = layer_.sum ? test_.layer->forward_with_sum(ctx(), x, other) : test_.layer->forward(ctx(), x);
    const Tensor grad_y = operand(y.value().shape(), 3);
    const Variable objective =
        ctx().tape.record("objective", Tensor::filled(stream(), {1}, 0), {y},
                          [y, grad_y](Context& back, const Tensor&) { y.add_grad(back, grad_y); });
    ctx().tape.backward(ctx(), objective);
    PassResults results{{y.value(), x.grad()}, {}};
    if (layer_.sum) results.activations.push_back(other.grad());
    for (const Parameter& parameter : test_.layer->parameters())
      if (parameter.variable.grad().defined())
        results.parameters.push_back(parameter.variable.grad().to_vector(stream()));
    return results;
  }

  Context& ctx() { return test_.ctx; }
  Stream& stream() { return *test_.ctx.stream; }
  std::vector<float> get(const char* name) { return test_.get(name); }

 private:
  LayerCase layer_;
  LayerUnderTest test_;
};

// The largest unit in the last place, relative to the value. Sums in another order, as in a GPU's kernels, can move a
// result by one.
double last_place(DType type) {
  return type == DType::bf16 ? std::ldexp(1, -7) : std::ldexp(1, -10);
}

void expect_rounded_once(Stream& stream, const Tensor& found, const Tensor& exact, bool bitwise) {
  const std::vector<float> got = cast(stream, found, DType::f32).to_vector(stream);
  const std::vector<float> expected = cast(stream, cast(stream, exact, found.type()), DType::f32).to_vector(stream);
  if (bitwise) {
    EXPECT_EQ(got, expected);
    return;
  }
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], last_place(found.type()) * std::abs(expected[i]) + 1e-6) << "element " << i;
}

void expect_same_in_16_bits(Device device, const LayerCase& layer) {
  const PassResults exact = LayerInType(device, layer).run(DType::f32);
  for (const DType type : {DType::bf16, DType::f16}) {
    SCOPED_TRACE(testing::Message() << layer << ", " << to_string(type));
    LayerInType in_type(device, layer);
    const PassResults found = in_type.run(type);
    for (std::size_t i = 0; i < exact.activations.size(); ++i) {
      SCOPED_TRACE(i == 0 ? "y" : "gradient of an input");
      ASSERT_EQ(found.activations[i].type(), type);
      // A CPU computes the same f32 results in the same order.
      expect_rounded_once(in_type.stream(), found.activations[i], exact.activations[i],
                          device.kind == Device::Kind::cpu);
    }
    // Their operands are exact, and they are not rounded.
    for (std::size_t i = 0; i < exact.parameters.size(); ++i)
      EXPECT_LE(relative_error(found.parameters[i], exact.parameters[i]), 1e-5) << "parameter " << i;
  }
}

}  // namespace

TEST_P(EveryDevice, PoolsRoundOnceIn16Bits) {
  for (const LayerCase& layer : {
           LayerCase{"max_pool", {{"kernel", "2"}}, {2, 3, 8, 8}},
           LayerCase{"max_pool", {{"kernel", "3"}, {"stride", "2"}}, {3, 5, 13, 13}},
           LayerCase{"max_pool", {{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {2, 3, 9, 7}},
           LayerCase{"max_pool", {{"kernel", "2"}}, {1, 2, 90, 90}},  // strips of a plane
           LayerCase{"max_pool", {{"kernel", "9"}, {"stride", "1"}}, {2, 2, 12, 12}},
           LayerCase{"avg_pool", {{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {2, 3, 9, 7}},
           LayerCase{"global_avg_pool", {}, {3, 4, 7, 7}},
       })
    expect_same_in_16_bits(GetParam(), layer);
}

TEST_P(EveryDevice, MapsRoundOnceIn16Bits) {
  for (const LayerCase& layer : {
           LayerCase{"prelu", {}, {3, 4, 5, 5}},
           LayerCase{"prelu", {}, {6, 5}},
           LayerCase{"scale", {}, {3, 4, 4, 4}},
           LayerCase{"scale", {}, {6, 5}},
           LayerCase{"drop_path", {{"rate", "0.5"}}, {8, 3, 5, 5}},
           LayerCase{"upsample", {{"factor", "2"}}, {2, 3, 5, 4}},
           LayerCase{"upsample", {{"factor", "[2, 3]"}, {"mode", "bilinear"}}, {2, 3, 5, 4}},
           LayerCase{"pad", {{"size", "[1, 0, 2, 3]"}}, {2, 3, 5, 4}},
           LayerCase{"pad", {{"size", "2"}, {"mode", "mirror"}}, {2, 3, 5, 4}},
           LayerCase{"flatten", {}, {2, 3, 5, 4}},
       })
    expect_same_in_16_bits(GetParam(), layer);
}

// Sums are in f32, which holds what f16 does not.
TEST_P(EveryDevice, NormsRoundOnceIn16Bits) {
  for (const LayerCase& layer : {
           LayerCase{"layer_norm", {}, {2, 24, 5, 5}},
           LayerCase{"layer_norm", {}, {2, 300, 9, 9}},
           LayerCase{"layer_norm", {}, {3, 20}},
           LayerCase{"layer_norm", {{"over", "all"}}, {3, 4, 5, 5}},
           LayerCase{"group_norm", {{"groups", "2"}}, {3, 6, 5, 5}},
           LayerCase{"group_norm", {{"groups", "2"}}, {3, 6}},
           LayerCase{"local_response_norm", {{"alpha", "0.5"}}, {2, 20, 5, 5}},
           LayerCase{"local_response_norm", {{"alpha", "0.5"}, {"beta", "0.6"}}, {2, 6, 5, 5}},
           LayerCase{"local_response_norm", {{"alpha", "0.5"}, {"size", "3"}}, {2, 6, 5, 5}},
           LayerCase{"local_response_norm", {{"alpha", "0.5"}, {"size", "3"}, {"beta", "0.6"}}, {2, 6, 5, 5}},
       })
    expect_same_in_16_bits(GetParam(), layer);
}

TEST_P(EveryDevice, BatchNormRoundsOnceIn16Bits) {
  for (const Shape& shape : {Shape{4, 3, 8, 8}, Shape{5, 3, 7, 7}, Shape{16, 2, 20, 20}, Shape{12, 5}})
    for (const bool frozen : {false, true})
      for (const bool relu : {false, true})
        for (const bool sum : {false, true})
          expect_same_in_16_bits(GetParam(), {"batch_norm", {}, shape, relu, sum, frozen});
}

// A GPU's shared memory does not hold a channel.
TEST_P(EveryDevice, BatchNormOfLargePlanesRoundsOnceIn16Bits) {
  for (const bool sum : {false, true})
    expect_same_in_16_bits(GetParam(), {"batch_norm", {}, {1, 2, 360, 360}, true, sum});
}

// Those of the stored values, in f32.
TEST_P(EveryDevice, BatchNormAveragesOf16BitsAreThoseOfF32) {
  const LayerCase layer{"batch_norm", {}, {4, 3, 6, 6}};
  const auto averages = [&](DType type) {
    LayerInType test(GetParam(), layer);
    test.run(type);
    std::vector<float> both = test.get("running_mean"), variance = test.get("running_var");
    both.insert(both.end(), variance.begin(), variance.end());
    return both;
  };
  const std::vector<float> exact = averages(DType::f32);
  for (const DType type : {DType::bf16, DType::f16}) EXPECT_LE(relative_error(averages(type), exact), 1e-6);
}

TEST_P(EveryDevice, MeansOfLargeHalvesStayFinite) {
  for (const char* kind : {"avg_pool", "global_avg_pool"}) {
    const LayerOptions options = kind == std::string("avg_pool") ? LayerOptions{{"kernel", "4"}} : LayerOptions{};
    LayerUnderTest test(GetParam(), kind, options, {1, 4, 4});
    Stream& stream = *test.ctx.stream;
    const Variable x(cast(stream, Tensor::filled(stream, {1, 1, 4, 4}, 60000), DType::f16));
    const Tensor y = cast(stream, test.layer->forward(test.ctx, x).value(), DType::f32);
    EXPECT_EQ(y.to_vector(stream), std::vector<float>{60000}) << kind;
  }
}

TEST_P(EveryDevice, ScaleOverflowsToInfinityInHalf) {
  LayerUnderTest test(GetParam(), "scale", {{"init", "2"}}, {1});
  Stream& stream = *test.ctx.stream;
  const Variable x(cast(stream, Tensor::from(stream, {2, 1}, {60000, -60000}), DType::f16));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(cast(stream, test.layer->forward(test.ctx, x).value(), DType::f32).to_vector(stream),
            (std::vector<float>{infinity, -infinity}));
}

}  // namespace twiddle
