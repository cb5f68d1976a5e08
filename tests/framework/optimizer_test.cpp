#include "framework/optimizers/optimizer.h"
#include "framework/config/params.h"
#include "framework/context.h"
#include "framework/parameter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "framework/error.h"
#include "framework/step_inputs.h"
#include "framework/tensor_ops.h"
#include "tests/support/copy_of.h"
#include "tests/support/every_device.h"
#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

// An optimizer with options, over one parameter of two weights {1, -2} and the gradient {0.5, 0.25}.
struct Bench {
  Context ctx;
  Parameter parameter;
  std::vector<Parameter*> parameters{&parameter};
  std::unique_ptr<Optimizer> optimizer;

  Bench(const Device& device, const std::string& kind, const std::vector<std::pair<std::string, std::string>>& options)
      : ctx(device) {
    ConfigNode node;
    node.kind = ConfigNode::Kind::mapping;
    for (const auto& [key, value] : options) {
      ConfigNode scalar;
      scalar.kind = ConfigNode::Kind::scalar;
      scalar.text = value;
      node.entries.push_back({key, {}, scalar});
    }
    Diagnostics diagnostics;
    Params params(node, kind, diagnostics);
    optimizer = builtin_optimizers().make(kind, params);
    params.finish();
    diagnostics.throw_if_any();
    parameter.name = "w";
    parameter.shape = {2};
    parameter.variable.value() = Tensor::from<float>(*ctx.stream, {2}, {1, -2});
  }

  std::vector<float> step(double rate) {
    parameter.variable.grad() = Tensor::from<float>(*ctx.stream, {2}, {0.5f, 0.25f});
    optimizer->step(ctx, parameters, {Tensor::filled(*ctx.stream, {1}, static_cast<float>(rate)), {}});
    return parameter.variable.value().to_vector(*ctx.stream);
  }
};

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << "element " << i;
}

TEST_P(EveryDevice, OptimizerSgdFollowsTheGradient) {
  Bench bench(GetParam(), "sgd", {});
  expect_near(bench.step(0.1), {1 - 0.1 * 0.5, -2 - 0.1 * 0.25});
}

TEST_P(EveryDevice, OptimizerSgdDecaysOnlyWeights) {
  Bench bench(GetParam(), "sgd", {{"weight_decay", "0.1"}});
  expect_near(bench.step(0.1), {1 - 0.1 * (0.5 + 0.1 * 1), -2 - 0.1 * (0.25 - 0.1 * 2)});
  Bench bias(GetParam(), "sgd", {{"weight_decay", "0.1"}});
  bias.parameter.weight_decay = false;
  expect_near(bias.step(0.1), {1 - 0.1 * 0.5, -2 - 0.1 * 0.25});
}

TEST_P(EveryDevice, OptimizerMomentumKeepsItsVelocity) {
  Bench bench(GetParam(), "sgd", {{"momentum", "0.9"}});
  expect_near(bench.step(0.1), {1 - 0.05, -2 - 0.025});
  expect_near(bench.step(0.1), {0.95 - 0.1 * (0.45 + 0.5), -2.025 - 0.1 * (0.225 + 0.25)});
}

TEST_P(EveryDevice, OptimizerNesterovLooksAhead) {
  Bench bench(GetParam(), "sgd", {{"momentum", "0.9"}, {"nesterov", "true"}});
  expect_near(bench.step(0.1), {1 - 0.1 * (0.5 + 0.9 * 0.5), -2 - 0.1 * (0.25 + 0.9 * 0.25)});
}

TEST_P(EveryDevice, OptimizerAdamFirstStepEqualsRate) {
  Bench bench(GetParam(), "adam", {});
  // mean / sqrt(square) is the sign of the gradient after one corrected step.
  expect_near(bench.step(0.01), {1 - 0.01, -2 - 0.01});
  expect_near(bench.step(0.01), {1 - 0.02, -2 - 0.02});
}

TEST_P(EveryDevice, OptimizerAdamWDecaysWeightDirectly) {
  Bench bench(GetParam(), "adamw", {{"weight_decay", "0.5"}});
  expect_near(bench.step(0.01), {1 * (1 - 0.005) - 0.01, -2 * (1 - 0.005) - 0.01});
}

// The documented formulas of torch.optim.SGD, Adam and AdamW, and of Lion's paper, in double: three steps with weight
// decay, for a weight and for a bias, which has none. The gradient is {0.5, 0.25} in each.
TEST_P(EveryDevice, OptimizersDecayByTheirFormulas) {
  struct Formula {
    const char* kind;
    std::vector<std::pair<std::string, std::string>> options;
    double (*weight)(double w, double g, double decay);
  };
  constexpr double rate = 0.1;
  const std::vector<Formula> formulas{
      {"sgd",
       {{"momentum", "0.9"}},
       [](double w, double g, double decay) {
         double velocity = 0;
         for (int step = 1; step <= 3; ++step) {
           velocity = 0.9 * velocity + g + decay * w;
           w -= rate * velocity;
         }
         return w;
       }},
      {"sgd",
       {{"momentum", "0.9"}, {"nesterov", "true"}},
       [](double w, double g, double decay) {
         double velocity = 0;
         for (int step = 1; step <= 3; ++step) {
           const double decayed = g + decay * w;
           velocity = 0.9 * velocity + decayed;
           w -= rate * (decayed + 0.9 * velocity);
         }
         return w;
       }},
      {"adam",
       {},
       [](double w, double g, double decay) {
         double mean = 0, square = 0;
         for (int step = 1; step <= 3; ++step) {
           const double decayed = g + decay * w;
           mean = 0.9 * mean + 0.1 * decayed;
           square = 0.999 * square + 0.001 * decayed * decayed;
           w -= rate * mean / (1 - std::pow(0.9, step)) / (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
         }
         return w;
       }},
      {"adamw",
       {},
       [](double w, double g, double decay) {
         double mean = 0, square = 0;
         for (int step = 1; step <= 3; ++step) {
           w -= rate * decay * w;
           mean = 0.9 * mean + 0.1 * g;
           square = 0.999 * square + 0.001 * g * g;
           w -= rate * mean / (1 - std::pow(0.9, step)) / (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
         }
         return w;
       }},
      {"lion", {}, [](double w, double, double decay) {  // the gradient, and so each mean, is positive
         for (int step = 1; step <= 3; ++step) w -= rate * (1 + decay * w);
         return w;
       }}};
  for (const Formula& formula : formulas) {
    auto options = formula.options;
    options.emplace_back("weight_decay", "0.3");
    for (const bool is_weight : {true, false}) {
      SCOPED_TRACE(join(formula.kind, is_weight ? " weight" : " bias"));
      Bench bench(GetParam(), formula.kind, options);
      bench.parameter.weight_decay = is_weight;
      for (int step = 0; step < 2; ++step) bench.step(rate);
      const double decay = is_weight ? 0.3 : 0;
      expect_near(bench.step(rate), {formula.weight(1, 0.5, decay), formula.weight(-2, 0.25, decay)});
    }
  }
}

// Gradients that differ reveal the order within the formulas: where epsilon is added, and which momentum Nesterov's
// step uses.
TEST_P(EveryDevice, OptimizersMatchPyTorchForChangingGradients) {
  const auto weights = [](Bench& bench, const std::vector<float>& gradients) {
    Stream& stream = *bench.ctx.stream;
    bench.parameter.variable.value() = Tensor::filled(stream, {2}, 1);
    std::vector<double> path;
    for (const float gradient : gradients) {
      bench.parameter.variable.grad() = Tensor::filled(stream, {2}, gradient);
      bench.optimizer->step(bench.ctx, bench.parameters, {Tensor::filled(stream, {1}, 0.1f)});
      path.push_back(bench.parameter.variable.value().to_vector(stream).at(0));
    }
    return path;
  };
  const auto expect = [](const std::vector<double>& path, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(path.at(i), expected[i], 2e-6) << "step " << i + 1;
  };
  Bench adamw(GetParam(), "adamw", {{"weight_decay", "0.5"}});
  expect(weights(adamw, {0.1f, 0, -0.2f}), {0.85, 0.740494, 0.737473});
  Bench nesterov(GetParam(), "sgd", {{"momentum", "0.9"}, {"nesterov", "true"}});
  expect(weights(nesterov, {1, 1, 0.5f}), {0.81, 0.539, 0.2901});

  // By the formula in double, with an epsilon large enough to matter.
  Bench adam(GetParam(), "adam", {{"epsilon", "0.1"}});
  std::vector<double> expected;
  double w = 1, mean = 0, square = 0;
  for (int step = 1; step <= 3; ++step) {
    const double g = step == 1 ? 0.1 : step == 2 ? 0 : -0.2;
    mean = 0.9 * mean + 0.1 * g;
    square = 0.999 * square + 0.001 * g * g;
    w -= 0.1 * mean / (1 - std::pow(0.9, step)) / (std::sqrt(square / (1 - std::pow(0.999, step))) + 0.1);
    expected.push_back(w);
  }
  expect(weights(adam, {0.1f, 0, -0.2f}), expected);

  // The last step moves against its gradient: the mean dominates.
  Bench lion(GetParam(), "lion", {{"weight_decay", "0.5"}});
  expected.clear();
  w = 1, mean = 0;
  for (const double g : {1.0, 0.0, -0.5, 0.05}) {
    const double direction = 0.9 * mean + 0.1 * g;
    w -= 0.1 * ((direction > 0 ? 1 : direction < 0 ? -1 : 0) + 0.5 * w);
    mean = 0.99 * mean + 0.01 * g;
    expected.push_back(w);
  }
  expect(weights(lion, {1, 0, -0.5f, 0.05f}), expected);
}

// The sign of zero is 0: weights without gradients so far move only by the decay.
TEST_P(EveryDevice, OptimizerLionKeepsWeightWithoutGradient) {
  Bench bench(GetParam(), "lion", {});
  bench.parameter.variable.grad() = Tensor::filled(*bench.ctx.stream, {2}, 0);
  bench.optimizer->step(bench.ctx, bench.parameters, {Tensor::filled(*bench.ctx.stream, {1}, 0.1f)});
  EXPECT_EQ(bench.parameter.variable.value().to_vector(*bench.ctx.stream), (std::vector<float>{1, -2}));
}

TEST_P(EveryDevice, OptimizerOwnRateMultipliesTheSchedule) {
  Bench bench(GetParam(), "sgd", {});
  bench.parameter.learning_rate = 2;
  expect_near(bench.step(0.1), {1 - 0.2 * 0.5, -2 - 0.2 * 0.25});
}

TEST_P(EveryDevice, OptimizerContinuesFromRestoredState) {
  for (const char* kind : {"sgd", "adam", "lion"}) {
    const std::vector<std::pair<std::string, std::string>> options =
        kind == std::string("sgd") ? std::vector<std::pair<std::string, std::string>>{{"momentum", "0.9"}}
                                   : std::vector<std::pair<std::string, std::string>>{};
    Bench straight(GetParam(), kind, options), resumed(GetParam(), kind, options);
    Stream& stream = *straight.ctx.stream;
    straight.step(0.1);
    resumed.parameter.variable.value() = copy_of(stream, straight.parameter.variable.value());
    std::vector<std::pair<std::string, Tensor>> state;
    for (const auto& [name, tensor] : straight.optimizer->state()) state.emplace_back(name, copy_of(stream, tensor));
    stream.synchronize();
    resumed.optimizer->restore(state);
    EXPECT_EQ(straight.step(0.1), resumed.step(0.1)) << kind;
  }
}

TEST_P(EveryDevice, OptimizerPrepareAllocatesItsState) {
  for (const char* kind : {"sgd", "adam", "adamw", "lion"}) {
    const std::vector<std::pair<std::string, std::string>> momentum{{"momentum", "0.9"}}, none;
    const auto& options = kind == std::string("sgd") ? momentum : none;
    Bench prepared(GetParam(), kind, options), straight(GetParam(), kind, options);
    prepared.optimizer->prepare(*prepared.ctx.stream, prepared.parameters);
    const auto taken = prepared.optimizer->state();
    EXPECT_EQ(static_cast<int>(taken.size()), prepared.optimizer->state_tensors()) << kind;
    EXPECT_EQ(prepared.step(0.1), straight.step(0.1)) << kind;
    for (const auto& [name, tensor] : prepared.optimizer->state()) {
      if (tensor.shape() != prepared.parameter.shape) continue;
      const auto before =
          std::find_if(taken.begin(), taken.end(), [&](const auto& each) { return each.first == name; });
      ASSERT_NE(before, taken.end()) << kind << ": " << name;
      EXPECT_EQ(before->second.version().storage, tensor.version().storage) << kind << ": " << name;
    }
  }
}

// More parameters than fit into one table of a GPU's update, of sizes that no vector width divides.
TEST_P(EveryDevice, OptimizerUpdatesManyParametersTheSame) {
  for (const char* kind : {"sgd", "adam", "lion"}) {
    Bench bench(GetParam(), kind, {});
    std::vector<Parameter> many(90);
    bench.parameters.clear();
    for (std::size_t i = 0; i < many.size(); ++i) {
      const auto size = static_cast<std::int64_t>(i * i % 23 + 1);
      many[i].name = "p" + std::to_string(i);
      many[i].shape = {size};
      many[i].variable.value() = Tensor::filled(*bench.ctx.stream, {size}, static_cast<float>(i));
      many[i].variable.grad() = Tensor::filled(*bench.ctx.stream, {size}, 1);
      bench.parameters.push_back(&many[i]);
    }
    bench.optimizer->step(bench.ctx, bench.parameters, {Tensor::filled(*bench.ctx.stream, {1}, 0.5f), {}});
    for (std::size_t i = 0; i < many.size(); ++i)
      for (const float value : many[i].variable.value().to_vector(*bench.ctx.stream))
        EXPECT_NEAR(value, static_cast<float>(i) - 0.5f, 1e-5) << kind << " " << i;
  }
}

// Each rank has a shard of the gradients, which may be empty.
TEST(Optimizer, GradientNormIsThatOfAllRanks) {
  on_ranks(3, [](const std::shared_ptr<Communicator>& ranks) {
    Bench bench({}, "sgd", {});
    const float own = ranks->rank() == 0 ? 3e30F : 4e30F;
    std::vector<Parameter*> here;
    if (ranks->rank() < 2) here = bench.parameters;
    bench.parameter.variable.grad() = Tensor::from<float>(*bench.ctx.stream, {2}, {own, 0});
    const Tensor norm = gradient_norm(*bench.ctx.stream, here, ranks.get());
    EXPECT_NEAR(norm.to_vector(*bench.ctx.stream).at(0), 5e30, 1e24);
  });
}

TEST_P(EveryDevice, OptimizerSkipsUpdateIfGuardIsNonFinite) {
  for (const char* kind : {"sgd", "adam", "lion"}) {
    Bench bench(GetParam(), kind, {});
    Stream& stream = *bench.ctx.stream;
    const auto step_with = [&](float guard) {
      bench.parameter.variable.grad() = Tensor::filled(stream, {2}, 1);
      bench.optimizer->step(
          bench.ctx, bench.parameters,
          {Tensor::filled(stream, {1}, 0.5f), Tensor::filled(stream, {1}, guard), Tensor::filled(stream, {1}, 0)});
      return bench.parameter.variable.value().to_vector(stream);
    };
    for (const float guard : {NAN, std::numeric_limits<float>::infinity()})
      EXPECT_EQ(step_with(guard), (std::vector<float>{1, -2})) << kind;
    expect_near(step_with(3), {0.5, -2.5});  // Adam's first step, whatever came before
  }
}

// Many parameters, some longer than any pack of neighbors, and one gradient that is NaN: its element and its state stay
// unchanged, and `found_bad` is set.
TEST_P(EveryDevice, OptimizerKeepsWeightsAndStateFinite) {
  const std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> optimizers = {
      {"sgd", {}},
      {"sgd", {{"momentum", "0.9"}}},
      {"sgd", {{"momentum", "0.9"}, {"nesterov", "true"}}},
      {"adam", {}},
      {"adamw", {}},
      {"lion", {}}};
  constexpr std::int64_t size = 39;
  for (const auto& [kind, options] : optimizers) {
    for (const float bad : {NAN, INFINITY, 3e38f}) {
      if (kind == "lion" && std::isfinite(bad)) continue;  // it takes the sign of any finite gradient
      for (const std::int64_t place : {0, 17, 38}) {
        Bench bench(GetParam(), kind, options);
        Stream& stream = *bench.ctx.stream;
        bench.parameter.shape = {size};
        bench.parameter.learning_rate = 1e6f;  // with a rate of 1, a gradient of 3e38 overflows, too
        bench.parameter.variable.value() = Tensor::filled(stream, {size}, 1);
        std::vector<float> gradient(size, 1e-6f);
        gradient[static_cast<std::size_t>(place)] = bad;
        bench.parameter.variable.grad() = Tensor::from(stream, {size}, gradient);
        const Tensor guard = Tensor::filled(stream, {1}, 3), found_bad = Tensor::filled(stream, {1}, 0);
        bench.optimizer->step(bench.ctx, bench.parameters, {Tensor::filled(stream, {1}, 1), guard, found_bad});

        const std::vector<float> weights = bench.parameter.variable.value().to_vector(stream);
        for (std::int64_t i = 0; i < size; ++i)
          EXPECT_EQ(weights[static_cast<std::size_t>(i)] == 1, i == place) << kind << ", " << bad << " at " << place;
        for (const auto& [name, state] : bench.optimizer->state()) EXPECT_TRUE(all_finite(stream, state)) << name;
        EXPECT_TRUE(std::isnan(found_bad.to_vector(stream).at(0))) << kind << ", " << bad << " at " << place;
        EXPECT_EQ(guard.to_vector(stream).at(0), 3) << "read by other threads of the same step";
      }
    }
  }
}

// Blocks of a CPU's threads, and tables of a GPU's launches, after the bad elements.
TEST_P(EveryDevice, OptimizerSkipsOnlyElementsWithBadGradients) {
  constexpr std::int64_t size = 3 * 4096 + 5;
  const std::set<std::pair<int, int>> bad{{0, 0}, {0, 4097}, {1, 17}, {45, 2}};  // parameter, element
  for (const char* kind : {"sgd", "adam", "lion"}) {
    Bench bench(GetParam(), kind, {});
    Stream& stream = *bench.ctx.stream;
    std::vector<Parameter> many(90);
    bench.parameters.clear();
    for (int i = 0; i < static_cast<int>(many.size()); ++i) {
      Parameter& parameter = many[static_cast<std::size_t>(i)];
      parameter.name = "p" + std::to_string(i);
      parameter.shape = {size};
      parameter.variable.value() = Tensor::filled(stream, {size}, 0);
      std::vector<float> gradient(size, 1);
      for (const auto& [owner, element] : bad)
        if (owner == i) gradient[static_cast<std::size_t>(element)] = NAN;
      parameter.variable.grad() = Tensor::from(stream, {size}, gradient);
      bench.parameters.push_back(&parameter);
    }
    const Tensor found_bad = Tensor::filled(stream, {1}, 0);
    bench.optimizer->step(bench.ctx, bench.parameters,
                          {Tensor::filled(stream, {1}, 0.5f), Tensor::filled(stream, {1}, 3), found_bad});
    std::set<std::pair<int, int>> kept;
    for (int i = 0; i < static_cast<int>(many.size()); ++i) {
      const std::vector<float> weights = many[static_cast<std::size_t>(i)].variable.value().to_vector(stream);
      for (int k = 0; k < size; ++k)
        if (weights[static_cast<std::size_t>(k)] == 0) kept.emplace(i, k);
    }
    EXPECT_EQ(kept, bad) << kind;
    EXPECT_TRUE(std::isnan(found_bad.to_vector(stream).at(0))) << kind;
  }
}

TEST_P(EveryDevice, StepInputsGuardLaterStepsOnly) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  const Tensor guard = Tensor::from<float>(stream, {2}, {3, 4});
  StepInputs inputs(stream, guard);
  const StepNumbers numbers = inputs.for_update();
  const auto value = [&](const Tensor& tensor) { return tensor.to_vector(stream).at(0); };
  inputs.set(stream, {.rate = 0.5});
  EXPECT_EQ(value(guard), 3);
  stream.fill(Tensor(numbers.found_bad).write(), 1, NAN);
  EXPECT_EQ(value(numbers.guard), 3);
  inputs.set(stream, {.rate = 0.5});
  EXPECT_TRUE(std::isnan(value(numbers.guard)));
  EXPECT_EQ(value(numbers.found_bad), 0);
  EXPECT_EQ(guard.to_vector(stream).at(1), 4);
}

TEST(Optimizer, SuggestsAKnownName) {
  EXPECT_NE(builtin_optimizers().unknown("sdg").find("did you mean 'sgd'"), std::string::npos);
}

TEST(Optimizer, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Bench({}, "sgd", {{"momentum", "1.5"}}), Error);
  EXPECT_THROW(Bench({}, "sgd", {{"nesterov", "true"}}), Error);
  EXPECT_THROW(Bench({}, "adam", {{"momentum", "0.9"}}), Error);
}

}  // namespace
}  // namespace twiddle
