#include "layers/sequential.h"

#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/tuner.h"
#include "tests/support/check_layer.h"

namespace twiddle {

namespace {

// A network from kinds and options; each layer is named after its kind and number: "linear1".
struct Net {
  using Line = std::pair<std::string, LayerOptions>;

  Context ctx;
  ConvTuner convolutions;
  Sequential layers;

  Net(Device device, const Shape& input, const std::vector<Line>& lines)
      : ctx(device), convolutions(make_conv_engines(device), ConvPolicy{}), layers(input) {
    for (const auto& [kind, options] : lines) {
      Diagnostics diagnostics;
      Params params(options_node(options), kind, diagnostics);
      const std::string name = kind + std::to_string(layers.items().size() + 1);
      layers.add(kind, builtin_layers().make(kind, Site{name, layers.output_shape(), convolutions}, params));
      diagnostics.throw_if_any();
    }
    layers.initialize(ctx);
  }
  Variable input(const Shape& shape, float value, bool needs_grad = false) {
    return Variable(Tensor::filled(*ctx.stream, shape, value), needs_grad);
  }
};

const std::vector<Net::Line> small_net{{"linear", {{"outputs", "4"}}}, {"relu", {}}, {"linear", {{"outputs", "2"}}}};

}  // namespace

TEST_P(EveryDevice, SequentialRunsLayersInOrder) {
  Net net(GetParam(), {1, 2, 2}, {{"max_pool", {{"kernel", "2"}}}, {"flatten", {}}, {"sigmoid", {}}});
  EXPECT_EQ(net.layers.output_shape(), (Shape{1}));
  const Variable y = net.layers.forward(net.ctx, net.input({3, 1, 2, 2}, 0));
  EXPECT_EQ(y.value().to_vector(*net.ctx.stream), (std::vector<float>{0.5f, 0.5f, 0.5f}));
}

TEST_P(EveryDevice, SequentialNamesItsParameters) {
  Net net(GetParam(), {3}, small_net);
  std::vector<std::string> names;
  for (const Parameter* parameter : net.layers.parameters()) names.push_back(parameter->name);
  EXPECT_EQ(names, (std::vector<std::string>{"linear1.weight", "linear1.bias", "linear3.weight", "linear3.bias"}));
}

TEST_P(EveryDevice, SequentialInitializationFollowsSeed) {
  Net one(GetParam(), {3}, small_net), two(GetParam(), {3}, small_net);
  for (std::size_t i = 0; i < one.layers.parameters().size(); ++i)
    EXPECT_EQ(one.layers.parameters()[i]->variable.value().to_vector(*one.ctx.stream),
              two.layers.parameters()[i]->variable.value().to_vector(*two.ctx.stream));
}

TEST_P(EveryDevice, SequentialFreesUnneededActivations) {
  // Two of the five outputs of equal size are alive at a time, plus the input, which belongs to the caller.
  Net net(GetParam(), {1, 32, 32}, std::vector<Net::Line>(5, {"avg_pool", {{"kernel", "1"}}}));
  const Variable x = net.input({2, 1, 32, 32}, 1, true);
  net.ctx.stream->reset_peak();
  const std::size_t before = net.ctx.stream->memory().in_use;  // the input, and on CUDA what the libraries work in
  const Variable y = net.layers.forward(net.ctx, x);
  EXPECT_EQ(net.ctx.stream->memory().peak - before, 2 * x.value().bytes());
  EXPECT_EQ(net.ctx.stream->memory().in_use - before, x.value().bytes());
}

TEST_P(EveryDevice, SequentialKeepsTheCallersInput) {
  Net net(GetParam(), {3}, {{"dropout", {}}, {"dropout", {}}});
  net.ctx.training = false;
  const Variable x = net.input({1, 3}, 2);
  const Variable y = net.layers.forward(net.ctx, x);
  EXPECT_TRUE(x.value().defined());
  EXPECT_EQ(y.value().to_vector(*net.ctx.stream), (std::vector<float>{2, 2, 2}));
}

TEST_P(EveryDevice, SequentialNamesTheFirstBadLayer) {
  Net net(GetParam(), {3}, small_net);
  EXPECT_EQ(net.layers.first_bad_layer(net.ctx, net.input({2, 3}, 1)), "");
  Tensor& bias = net.layers.parameters()[3]->variable.value();
  bias = Tensor::filled(*net.ctx.stream, bias.shape(), INFINITY);
  EXPECT_EQ(net.layers.first_bad_layer(net.ctx, net.input({2, 3}, 1)), "linear3");
  EXPECT_EQ(net.layers.first_bad_layer(net.ctx, net.input({2, 3}, NAN)), "linear1");
  EXPECT_TRUE(net.ctx.tape.empty());
}

TEST_P(EveryDevice, SequentialTimesEachLayer) {
  Net net(GetParam(), {3}, small_net);
  net.ctx.profiler.enable(true);
  net.layers.forward(net.ctx, net.input({2, 3}, 1));
  ASSERT_EQ(net.ctx.profiler.entries().size(), 3u);
  EXPECT_EQ(net.ctx.profiler.entries()[1].name, "relu2");
  EXPECT_EQ(net.ctx.profiler.entries()[1].part, "forward");
}

TEST_P(EveryDevice, SequentialRefusesAnotherShape) {
  Net net(GetParam(), {3}, small_net);
  EXPECT_THROW(net.layers.forward(net.ctx, net.input({2, 4}, 1)), Error);
  EXPECT_THROW(net.layers.forward(net.ctx, net.input({3}, 1)), Error);
}

// The identity, for f32 alone.
class OnlyF32 final : public Layer {
 public:
  OnlyF32() : Layer("only_f32", {2}) {}
  Variable forward(Context& ctx, const Variable& x) override {
    EXPECT_EQ(x.value().type(), DType::f32);
    return ctx.tape.record(name(), x.value(), {x}, [x](Context& back, const Tensor& grad_y) {
      EXPECT_EQ(grad_y.type(), DType::f32);
      x.add_grad(back, grad_y);
    });
  }
};

TEST_P(EveryDevice, SequentialCastsAroundLayerOfF32) {
  Context ctx(GetParam());
  Sequential net({2}, DType::bf16);
  net.add("only_f32", std::make_unique<OnlyF32>());
  const Variable x(Tensor::filled(*ctx.stream, {1, 2}, 3), true), y = net.forward(ctx, x);
  EXPECT_EQ(y.value().type(), DType::bf16);
  const Tensor grad_y = y.value();
  const Variable objective = ctx.tape.record("objective", Tensor::filled(*ctx.stream, {1}, 0), {y},
                                             [&](Context& back, const Tensor&) { y.add_grad(back, grad_y); });
  ctx.tape.backward(ctx, objective);
  EXPECT_EQ(x.grad().to_vector(*ctx.stream), (std::vector<float>{3, 3}));
}

// A layer that throws OutOfMemory for the host in one of its passes.
class Hungry final : public Layer {
 public:
  explicit Hungry(bool backward) : Layer("hungry", {1}), backward_(backward) {}
  Variable forward(Context& ctx, const Variable& x) override {
    if (!backward_) throw std::bad_alloc();
    return ctx.tape.record(name(), x.value(), {x}, [](Context&, const Tensor&) { throw std::bad_alloc(); });
  }

 private:
  bool backward_;
};

TEST(Sequential, NamesLayerIfOutOfMemory) {
  for (const bool backward : {false, true}) {
    Context ctx;
    Sequential net({1});
    net.add("hungry", std::make_unique<Hungry>(backward));
    try {
      ctx.tape.backward(ctx, net.forward(ctx, Variable(Tensor::filled(*ctx.stream, {1, 1}, 1), true)));
      FAIL() << "ran without memory";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.what(),
                join("layer 'hungry', ", backward ? "backward" : "forward", ": out of memory on the host"));
    }
  }
}

}  // namespace twiddle
