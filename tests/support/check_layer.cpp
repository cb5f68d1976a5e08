#include "tests/support/check_layer.h"

#include <cmath>
#include <map>
#include <numeric>

#include "layers/conv/engines/engines.h"
#include "models/evaluation/evaluate.h"

namespace twiddle {

namespace {

ConfigNode scalar_node(const std::string& text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.text = text;
  return node;
}

ConfigNode value_node(const std::string& text) {
  if (text.empty() || text.front() != '[') return scalar_node(text);
  ConfigNode list;
  list.kind = ConfigNode::Kind::sequence;
  std::stringstream parts(text.substr(1, text.size() - 2));
  for (std::string part; std::getline(parts, part, ',');)
    list.items.push_back(scalar_node(part.substr(part.find_first_not_of(' '))));
  return list;
}

std::unique_ptr<Layer> make_layer(const std::string& kind, const LayerOptions& options, const Shape& image,
                                  ConvTuner& convolutions) {
  Diagnostics diagnostics;
  Params params(options_node(options), kind, diagnostics);
  std::unique_ptr<Layer> layer = builtin_layers().make(kind, Site{"layer", image, convolutions}, params);
  params.finish();
  diagnostics.throw_if_any();
  return layer;
}

Shape without_batch(const Shape& shape) {
  return Shape(shape.begin() + 1, shape.end());
}

std::vector<float> normal_values(std::int64_t count, RandomSequence random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = random.normal(i);
  return values;
}

std::vector<float> unit_direction(std::size_t count, RandomSequence random) {
  std::vector<float> values = normal_values(static_cast<std::int64_t>(count), random);
  const double norm = std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  for (float& value : values) value = static_cast<float>(value / norm);
  return values;
}

std::vector<float> input_values(std::int64_t count, RandomSequence random, const GradientCheck& check) {
  std::vector<float> values = normal_values(count, random.split(0));
  const float least = check.keep_away_from_zero;
  for (float& value : values)
    if (std::abs(value) < least) value += value < 0 ? -least : least;
  if (check.distinct) {  // a shuffled ladder
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(2.5 * check.step * (static_cast<double>(i) - static_cast<double>(count) / 2));
    for (std::int64_t i = count - 1; i > 0; --i)
      std::swap(values[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(random.split(1).below(i, i + 1))]);
  }
  return values;
}

// The backward pass from y, whose gradient is given.
void play_back(Context& ctx, const Variable& y, const std::vector<float>& gradient) {
  const Tensor grad_y = Tensor::from(*ctx.stream, y.value().shape(), gradient);
  const Variable objective =
      ctx.tape.record("objective", Tensor::filled(*ctx.stream, {1}, 0), {y},
                      [y, grad_y](Context& backward_ctx, const Tensor&) { y.add_grad(backward_ctx, grad_y); });
  ctx.tape.backward(ctx, objective);
}

// Everything that a layer computes from given values: its output, and the gradients of sum(weighting x output).
struct Evaluation {
  double objective = 0;
  std::vector<float> output;
  std::map<std::string, std::vector<float>> gradients;  // "input" and the trainable parameters
};

using Values = std::map<std::string, std::vector<float>>;  // "input" and the trainable parameters

Evaluation evaluate(LayerUnderTest& test, const Shape& shape, const Values& values, std::uint64_t seed,
                    bool input_needs_grad = true) {
  Context& ctx = test.ctx;
  Stream& stream = *ctx.stream;
  ctx.random.restore(seed, 0);  // dropout draws the same mask every time
  for (Parameter& parameter : test.layer->parameters()) {
    if (!parameter.trainable) continue;
    parameter.variable.value() = Tensor::from(stream, parameter.shape, values.at(parameter.name));
    parameter.variable.clear_grad();
  }
  const Variable x(Tensor::from(stream, shape, values.at("input")), input_needs_grad);
  const Variable y = test.layer->forward(ctx, x);
  x.drop_value();  // as a network does: backward must hold the tensors that it reads

  Evaluation result;
  result.output = y.value().to_vector(stream);
  const std::vector<float> weighting = normal_values(y.value().size(), RandomSequence{seed, 0}.split(99));
  result.objective = std::inner_product(weighting.begin(), weighting.end(), result.output.begin(), 0.0,
                                        std::plus<double>(), [](float a, float b) { return double(a) * b; });
  play_back(ctx, y, weighting);

  if (x.grad().defined()) result.gradients["input"] = x.grad().to_vector(stream);
  for (Parameter& parameter : test.layer->parameters())
    if (parameter.trainable && parameter.variable.grad().defined())
      result.gradients[parameter.name] = parameter.variable.grad().to_vector(stream);
  return result;
}

void expect_directional_derivative(LayerUnderTest& test, const Shape& shape, const Values& values,
                                   const std::string& name, const std::vector<float>& gradient,
                                   const GradientCheck& check, RandomSequence random) {
  const std::vector<float> direction = unit_direction(gradient.size(), random);
  const auto objective_at = [&](double distance) {
    Values moved = values;
    for (std::size_t i = 0; i < direction.size(); ++i) moved[name][i] += static_cast<float>(distance * direction[i]);
    return evaluate(test, shape, moved, check.seed).objective;
  };
  const double numeric = (objective_at(check.step) - objective_at(-check.step)) / (2 * check.step);
  double analytic = 0, squares = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    analytic += double(gradient[i]) * direction[i];
    squares += double(gradient[i]) * gradient[i];
  }
  const double rms = std::sqrt(squares / static_cast<double>(gradient.size()));
  EXPECT_TRUE(std::abs(numeric - analytic) <= check.tolerance * std::max(rms, 1e-3))
      << "gradient of " << name << " along a random direction: backward says " << analytic << ", differences say "
      << numeric << ", rms gradient " << rms;
}

}  // namespace

ConfigNode options_node(const LayerOptions& options) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::mapping;
  for (const auto& [key, value] : options) node.entries.push_back({key, {}, value_node(value)});
  return node;
}

LayerUnderTest::LayerUnderTest(Device device, const std::string& kind, const LayerOptions& options, const Shape& image)
    : ctx(device), convolutions(make_conv_engines(device), ConvPolicy{}) {
  layer = make_layer(kind, options, image, convolutions);
  for (Parameter& parameter : layer->parameters()) initialize(*ctx.stream, parameter, ctx.random.seed());
}

Parameter& LayerUnderTest::parameter(const std::string& name) {
  for (Parameter& each : layer->parameters())
    if (each.name == "layer." + name) return each;
  throw Error("the layer has no parameter " + name);
}

void LayerUnderTest::set(const std::string& name, const std::vector<float>& values) {
  parameter(name).variable.value() = Tensor::from(*ctx.stream, parameter(name).shape, values);
}

std::vector<float> LayerUnderTest::get(const std::string& name) {
  return parameter(name).variable.value().to_vector(*ctx.stream);
}

std::vector<float> LayerUnderTest::forward(const Shape& shape, const std::vector<float>& values) {
  const Variable x(Tensor::from(*ctx.stream, shape, values));
  const Variable y = layer->forward(ctx, x);
  ctx.tape.clear();
  EXPECT_EQ(y.value().shape(), output_shape(shape.front()));
  return y.value().to_vector(*ctx.stream);
}

Shape LayerUnderTest::output_shape(std::int64_t batch) const {
  Shape shape = layer->output_shape();
  shape.insert(shape.begin(), batch);
  return shape;
}

LayerUnderTest::Passes LayerUnderTest::forward_and_backward(const Shape& shape, const std::vector<float>& values,
                                                            const std::vector<float>& grad_y) {
  const Variable x(Tensor::from(*ctx.stream, shape, values), true);
  const Variable y = layer->forward(ctx, x);
  play_back(ctx, y, grad_y);
  return {y.value().to_vector(*ctx.stream), x.grad().to_vector(*ctx.stream)};
}

std::vector<float> whole_numbers(const Shape& shape, std::uint64_t seed) {
  const RandomSequence random{seed, 0};
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(random.below(static_cast<std::int64_t>(i), 9)) - 4;
  return values;
}

std::vector<float> gradients_of(LayerUnderTest& test, const Shape& shape, const std::vector<float>& values) {
  Values all{{"input", values}};
  for (Parameter& parameter : test.layer->parameters())
    if (parameter.trainable) all[parameter.name] = parameter.variable.value().to_vector(*test.ctx.stream);
  std::vector<float> gradients;
  for (const auto& [name, gradient] : evaluate(test, shape, all, 1).gradients)
    gradients.insert(gradients.end(), gradient.begin(), gradient.end());
  return gradients;
}

std::vector<float> run_layer(Device device, const std::string& kind, const LayerOptions& options, const Shape& shape,
                             const std::vector<float>& values) {
  return LayerUnderTest(device, kind, options, without_batch(shape)).forward(shape, values);
}

std::string layer_error(const std::string& kind, const LayerOptions& options, const Shape& image) {
  ConvTuner convolutions(make_conv_engines(Device{}), ConvPolicy{});
  try {
    make_layer(kind, options, image, convolutions);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    return error.what();
  }
  return {};
}

void expect_same_input_gradient_where_frozen(Device device, const std::string& kind, const LayerOptions& options,
                                             const Shape& shape) {
  LayerUnderTest frozen(device, kind, options, without_batch(shape)),
      trained(device, kind, options, without_batch(shape));
  for (Parameter& parameter : frozen.layer->parameters())
    parameter.trainable = false, parameter.variable = Variable(parameter.variable.value(), false);
  const RandomSequence random{1, 0};
  const std::vector<float> x = normal_values(count_of(shape), random.split(0));
  const std::vector<float> grad_y = normal_values(count_of(trained.output_shape(shape[0])), random.split(1));
  const auto grad_x = [&](LayerUnderTest& test) { return test.forward_and_backward(shape, x, grad_y).grad_x; };
  EXPECT_EQ(grad_x(frozen), grad_x(trained));
  for (const Parameter& parameter : frozen.layer->parameters())
    EXPECT_FALSE(parameter.variable.grad().defined()) << parameter.name;
}

void expect_gradients(Device device, const std::string& kind, const LayerOptions& options, const Shape& shape,
                      const GradientCheck& check) {
  LayerUnderTest test(device, kind, options, without_batch(shape));
  const RandomSequence random{check.seed, 0};
  Values values;
  values["input"] = input_values(count_of(shape), random.split(1), check);
  std::uint64_t branch = 2;
  for (Parameter& parameter : test.layer->parameters()) {
    if (!parameter.trainable) continue;
    values[parameter.name] = parameter.variable.value().to_vector(*test.ctx.stream);
    // Avoids special values such as a scale of one and a bias of zero.
    const std::vector<float> shift = normal_values(count_of(parameter.shape), random.split(branch++));
    for (std::size_t i = 0; i < shift.size(); ++i) values[parameter.name][i] += 0.1f * shift[i];
  }

  const Evaluation here = evaluate(test, shape, values, check.seed);
  EXPECT_TRUE(test.ctx.tape.empty());
  for (const auto& [name, value] : values) {
    ASSERT_TRUE(here.gradients.count(name)) << "backward gave no gradient of " << name;
    ASSERT_EQ(here.gradients.at(name).size(), value.size());
    for (int trial = 0; trial < 3; ++trial)
      expect_directional_derivative(test, shape, values, name, here.gradients.at(name), check, random.split(branch++));
  }

  const Evaluation first_layer = evaluate(test, shape, values, check.seed, false);
  EXPECT_EQ(first_layer.gradients.count("input"), 0u) << "an input that needs no gradient got one";
  for (const auto& [name, gradient] : first_layer.gradients)
    EXPECT_LE(relative_error(gradient, here.gradients.at(name)), 1e-5) << name;

  if (device.kind == Device::Kind::cpu) return;
  LayerOptions of_cpu = options;
  std::erase_if(of_cpu, [](const auto& option) { return option.first == "engine"; });  // it may have no such engine
  LayerUnderTest reference(Device{}, kind, of_cpu, without_batch(shape));
  const Evaluation there = evaluate(reference, shape, values, check.seed);
  EXPECT_LE(relative_error(here.output, there.output), 1e-4) << "output against the CPU's";
  for (const auto& [name, gradient] : there.gradients)
    EXPECT_LE(relative_error(here.gradients.at(name), gradient), 1e-4) << name << " against the CPU's";
}

}  // namespace twiddle
