#include "models/training/sharded_optimizer.h"
#include "framework/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/error.h"
#include "tests/models/small_training.h"
#include "tests/support/copy_of.h"
#include "tests/support/thread_ranks.h"

namespace twiddle {
namespace {

using RankPointer = std::shared_ptr<Communicator>;
using NamedState = std::vector<std::pair<std::string, Tensor>>;

// Parameters of many sizes, one of them frozen, of which a rank may have nothing, a part, or several.
struct UpdateBench {
  Context ctx;
  Stream& stream = *ctx.stream;
  std::deque<Parameter> parameters;
  std::unique_ptr<Optimizer> optimizer;

  explicit UpdateBench(const std::string& optimizer_name)
      : optimizer(std::move(small_experiment({{"train.optimizer", optimizer_name, "--set"}}).optimizer)) {
    int number = 0;
    for (const std::int64_t size : {1, 17, 300, 5, 64}) {
      Parameter& parameter = parameters.emplace_back();
      parameter.name = "layer" + std::to_string(number++) + ".weight with a space";
      parameter.shape = {size};
      parameter.variable.value() = Tensor::from(stream, {size}, numbers(size, 1));
      parameter.trainable = size != 5;
      parameter.weight_decay = size != 17;
      parameter.learning_rate = size == 64 ? 2 : 1;
    }
  }
  // With few bits, so that the parts of one add up to it exactly.
  static std::vector<float> numbers(std::int64_t size, int seed) {
    const RandomSequence random = RandomSequence{static_cast<std::uint64_t>(seed)};
    std::vector<float> values;
    for (std::int64_t i = 0; i < size; ++i) values.push_back(std::round(64 * random.normal(i)) / 64);
    return values;
  }
  std::vector<Parameter*> all() {
    std::vector<Parameter*> pointers;
    for (Parameter& parameter : parameters) pointers.push_back(&parameter);
    return pointers;
  }
  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Parameter& parameter : parameters) all.push_back(parameter.variable.value().to_vector(*ctx.stream));
    return all;
  }
  void step(std::vector<Parameter*> updated) {
    optimizer->step(ctx, updated, {Tensor::filled(stream, {1}, 0.125F), {}});
  }
  void step_alone(int seed) {
    for (Parameter& parameter : parameters)
      if (parameter.trainable)
        parameter.variable.grad() = Tensor::from(stream, parameter.shape, numbers(count_of(parameter.shape), seed));
    step(all());
  }
  // Each rank brings an equal part of the same gradients.
  void step_sharded(ShardedOptimizer& sharded, int ranks, int seed) {
    sharded.begin_step(false);
    auto gradient = sharded.gradients().begin();
    for (const Parameter& parameter : parameters) {
      if (!parameter.trainable) continue;
      std::vector<float> values = numbers(count_of(parameter.shape), seed);
      for (float& value : values) value *= 1.0F / static_cast<float>(ranks);
      Tensor buffer = *gradient++;
      stream.copy(buffer.write(), values.data(), values.size() * sizeof(float));
      stream.synchronize();  // `values` is freed
    }
    sharded.reduce_gradients();
    step(sharded.shard());
    sharded.end_update();
  }
};

std::map<std::string, std::vector<float>> values_by_name(Stream& stream, const NamedState& state) {
  std::map<std::string, std::vector<float>> values;
  for (const auto& [name, tensor] : state) values[name] = tensor.to_vector(stream);
  return values;
}

NamedState copies_of(Stream& stream, const NamedState& state) {
  NamedState copies;
  for (const auto& [name, tensor] : state) copies.emplace_back(name, copy_of(stream, tensor));
  return copies;
}

// Bitwise, weights and state, on ranks of which some may have no part of any parameter.
TEST(ShardedOptimizer, UpdatesAsOneProcess) {
  for (const char* const name : {"{sgd: {momentum: 0.9, weight_decay: 0.1}}", "{adamw: {weight_decay: 0.1}}", "sgd"})
    for (const int size : {2, 4, 8}) {
      UpdateBench one(name);
      for (const int seed : {2, 3, 4}) one.step_alone(seed);
      on_ranks(size, [&](const RankPointer& ranks) {
        UpdateBench several(name);
        ShardedOptimizer sharded(*ranks, several.ctx, several.all(), *several.optimizer, false);
        for (const int seed : {2, 3, 4}) several.step_sharded(sharded, size, seed);
        EXPECT_EQ(several.values(), one.values()) << name << " on " << size;
        EXPECT_EQ(values_by_name(several.stream, sharded.whole_state()),
                  values_by_name(one.stream, one.optimizer->state()))
            << name << " on " << size;
      });
    }
}

// In the backward pass a gradient is reduced when it is complete: after the last layer that adds to it.
TEST(ShardedOptimizer, ReducesGradientUsedTwiceOnce) {
  on_ranks(2, [](const RankPointer& ranks) {
    UpdateBench several("sgd");
    Context& ctx = several.ctx;
    const Variable weight = several.parameters.front().variable;  // one number
    ShardedOptimizer sharded(*ranks, ctx, {&several.parameters.front()}, *several.optimizer, false);
    weight.set_grad_buffer(sharded.gradients().front());
    sharded.begin_step(true);
    const auto add = [&](const Variable& x) {
      return ctx.tape.record("add", Tensor::filled(several.stream, {1}, 1), {x, weight},
                             [x, weight](Context& back, const Tensor& grad) {
                               x.add_grad(back, grad);
                               weight.add_grad(back, grad);
                             });
    };
    const Variable twice = add(add(Variable(Tensor::filled(several.stream, {1}, 0), true)));
    ctx.tape.backward(ctx, twice);
    sharded.reduce_gradients();
    for (const Parameter* piece : sharded.shard())  // on the rank that has it
      EXPECT_EQ(piece->variable.grad().to_vector(several.stream).at(0), 2 * 2);
  });
}

// The last parameters first: 2.4 of 4.8 million floats, half of what is left, and the rest.
TEST(ShardedOptimizer, BucketsHalveInSize) {
  on_ranks(2, [](const RankPointer& ranks) {
    Context ctx;
    std::deque<Parameter> parameters;
    std::vector<Parameter*> pointers;
    for (const std::int64_t size : {600'000, 600'000, 600'000, 600'000, 1'200'000, 1'200'000}) {
      Parameter& parameter = parameters.emplace_back();
      parameter.name = "weight" + std::to_string(parameters.size());
      parameter.shape = {size};
      parameter.variable.value() = Tensor::filled(*ctx.stream, {size}, 1);
      pointers.push_back(&parameter);
    }
    const std::unique_ptr<Optimizer> optimizer = std::move(small_experiment({}).optimizer);
    const ShardedOptimizer sharded(*ranks, ctx, pointers, *optimizer, false);
    std::vector<int> in_buckets{1};
    for (std::size_t i = 1; i < pointers.size(); ++i) {
      const Tensor &here = sharded.gradients()[i], &before = sharded.gradients()[i - 1];  // stored after it
      if (before.read() != here.read() + here.size()) in_buckets.push_back(0);
      ++in_buckets.back();
    }
    EXPECT_EQ(in_buckets, (std::vector{2, 2, 2}));
  });
}

TEST(ShardedOptimizer, KeepsOnlyStateOfOwnShard) {
  std::int64_t kept[4] = {};
  on_ranks(4, [&](const RankPointer& ranks) {
    UpdateBench several("adam");
    const ShardedOptimizer sharded(*ranks, several.ctx, several.all(), *several.optimizer, false);
    for (const auto& [name, tensor] : several.optimizer->state()) kept[ranks->rank()] += tensor.size();
  });
  EXPECT_EQ(kept[0] + kept[1] + kept[2] + kept[3], 2 * (1 + 17 + 300 + 64));
  for (const std::int64_t here : kept) EXPECT_LE(here, 2 * 112);
}

// What a checkpoint has of one process, or of another number of ranks.
TEST(ShardedOptimizer, RestoresWholeState) {
  UpdateBench one("adam");
  one.step_alone(2);
  const NamedState state = copies_of(one.stream, one.optimizer->state());
  const auto values = one.values();
  one.step_alone(3);
  on_ranks(4, [&](const RankPointer& ranks) {
    UpdateBench several("adam");
    for (std::size_t i = 0; i < values.size(); ++i)
      several.parameters[i].variable.value() = Tensor::from(several.stream, several.parameters[i].shape, values[i]);
    several.optimizer->restore(copies_of(several.stream, state));
    ShardedOptimizer sharded(*ranks, several.ctx, several.all(), *several.optimizer, false);
    several.step_sharded(sharded, 4, 3);
    EXPECT_EQ(several.values(), one.values());
    // Adam's count of steps, which a rank without a piece of the parameter has read, too, and has not counted on.
    const auto whole = values_by_name(several.stream, sharded.whole_state());
    for (const Parameter* parameter : {&several.parameters[0], &several.parameters[2], &several.parameters[4]})
      EXPECT_EQ(whole.at("steps." + parameter->name), std::vector<float>{2}) << parameter->name;
  });
}

TEST(ShardedOptimizer, KeepsStateOfFrozenParameter) {
  on_ranks(2, [&](const RankPointer& ranks) {
    UpdateBench several("{sgd: {momentum: 0.9}}");
    const std::string name = "momentum." + several.parameters[3].name;
    several.optimizer->restore({{name, Tensor::filled(several.stream, {5}, 7)}});
    ShardedOptimizer sharded(*ranks, several.ctx, several.all(), *several.optimizer, false);
    const auto state = values_by_name(several.stream, sharded.whole_state());
    EXPECT_EQ(state.at(name), std::vector<float>(5, 7));
    EXPECT_EQ(state.size(), 5u);
  });
}

}  // namespace
}  // namespace twiddle
