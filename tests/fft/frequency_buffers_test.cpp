#include "fft/frequency_buffers.h"
#include "framework/context.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/conv_problem.h"

namespace twiddle {
namespace {

class Buffers : public testing::Test {
 protected:
  Buffers() { planes_ = planes_of(problem_, ConvOperand::x, whole_plane(problem_, 8, 8)); }
  bool current(const Tensor& source, std::size_t bytes = 1000, const std::string& kind = "kind",
               const Tensor& mask = {}, bool in_turn = false) {
    bool computed = false;
    buffers_.spectrum(*ctx_.stream, {source, planes_, kind, mask, in_turn}, bytes, [&](void*) { computed = true; });
    return !computed;
  }
  bool current_in_turn(const Tensor& source) { return current(source, 1000, "kind", {}, true); }
  Context ctx_;
  ConvProblem problem_ = conv_problem("1x1x6x6 * 1x1x3x3 pad 1");
  Planes planes_;
  FrequencyBuffers buffers_{3000};
  Tensor x_ = Tensor::filled(*ctx_.stream, {36}, 0), y_ = Tensor::filled(*ctx_.stream, {36}, 0);
};

TEST_F(Buffers, ReuseSpectrumUntilTensorChanges) {
  EXPECT_FALSE(current(x_));
  EXPECT_TRUE(current(x_));
  EXPECT_FALSE(current(y_));
  EXPECT_TRUE(current(x_.reshaped({6, 6})));  // the same elements
  x_.write();
  EXPECT_FALSE(current(x_));
  EXPECT_TRUE(current(y_));
  EXPECT_EQ(buffers_.use().computed, 3);
  EXPECT_EQ(buffers_.use().reused, 3);
  EXPECT_EQ(buffers_.use().held, 2000u);  // what x was before is not kept
}

TEST_F(Buffers, DistinguishKindsAndGrids) {
  EXPECT_FALSE(current(x_));
  EXPECT_FALSE(current(x_, 1000, "another"));
  planes_ = planes_of(problem_, ConvOperand::x, whole_plane(problem_, 8, 10));
  EXPECT_FALSE(current(x_));
}

TEST_F(Buffers, DistinguishMasksAndKeepLatest) {
  EXPECT_FALSE(current(x_, 1000, "kind", y_));
  EXPECT_TRUE(current(x_, 1000, "kind", y_));
  EXPECT_FALSE(current(x_));
  y_.write();
  EXPECT_FALSE(current(x_, 1000, "kind", y_));
  EXPECT_EQ(buffers_.use().held, 1000u);
}

TEST_F(Buffers, KeepNothingIfComputationFails) {
  const auto fails = [](void*) { throw std::runtime_error("no memory"); };
  EXPECT_THROW(buffers_.spectrum(*ctx_.stream, {x_, planes_, "kind"}, 1000, fails), std::runtime_error);
  EXPECT_EQ(buffers_.use().held, 0u);
  EXPECT_FALSE(current(x_));
}

TEST_F(Buffers, EvictLeastRecentlyUsed) {
  const Tensor z = Tensor::filled(*ctx_.stream, {36}, 0);
  current(x_), current(y_), current(x_);
  EXPECT_FALSE(current(z, 2000));
  EXPECT_TRUE(current(x_));
  EXPECT_FALSE(current(y_));
  EXPECT_LE(buffers_.use().peak, 3000u);
}

// Uses four weights in turn with memory for three: evicting the oldest would recompute all of them each time.
TEST_F(Buffers, KeepSomeOfCyclicallyUsedWeights) {
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back(Tensor::filled(*ctx_.stream, {36}, 0));
  for (const Tensor& weight : weights) EXPECT_FALSE(current_in_turn(weight));
  for (int round = 0; round < 3; ++round) {
    buffers_.reset_use();
    for (const Tensor& weight : weights) current_in_turn(weight);
    EXPECT_LE(buffers_.use().computed, 2);
    EXPECT_EQ(buffers_.use().held, 3000u);
  }
}

TEST_F(Buffers, EvictFreedTensorsFirst) {
  EXPECT_FALSE(current_in_turn(x_));
  { current(Tensor::filled(*ctx_.stream, {36}, 0)); }
  { const auto scratch = buffers_.scratch(*ctx_.stream, 2000); }
  EXPECT_TRUE(current_in_turn(x_));
}

TEST_F(Buffers, DropOlderVersionsOfEveryKind) {
  current(x_), current(x_, 1000, "another");
  x_.write();
  current(x_);
  EXPECT_EQ(buffers_.use().held, 1000u);
}

TEST_F(Buffers, ForgetFreedTensorsOrAll) {
  current(x_);
  { current(Tensor::filled(*ctx_.stream, {36}, 0)); }
  EXPECT_EQ(buffers_.use().held, 2000u);
  buffers_.forget_gone();
  EXPECT_EQ(buffers_.use().held, 1000u);
  EXPECT_TRUE(current(x_));
  buffers_.forget();
  EXPECT_EQ(buffers_.use().held, 0u);
}

TEST_F(Buffers, ForgetFreedTensorsOnNextUse) {
  { current(Tensor::filled(*ctx_.stream, {36}, 0)); }
  current(x_);
  EXPECT_EQ(buffers_.use().held, 1000u);
}

TEST_F(Buffers, DoNotEvictSpectrumInUse) {
  const auto held = buffers_.spectrum(*ctx_.stream, {x_, planes_, "kind"}, 1000, [](void*) {});
  current(y_);
  { const auto scratch = buffers_.scratch(*ctx_.stream, 2000); }
  EXPECT_TRUE(current(x_));
  EXPECT_FALSE(current(y_));
}

TEST_F(Buffers, CountScratchUntilFreed) {
  auto scratch = buffers_.scratch(*ctx_.stream, 500);
  EXPECT_EQ(buffers_.use().held, 500u);
  scratch.reset();
  EXPECT_EQ(buffers_.use().held, 0u);
  EXPECT_EQ(buffers_.use().peak, 500u);
  EXPECT_EQ(buffers_.scratch(*ctx_.stream, 0), nullptr);
}

TEST_F(Buffers, RestartCountsAfterResetUse) {
  { const auto scratch = buffers_.scratch(*ctx_.stream, 2000); }
  current(x_);
  buffers_.reset_use();
  EXPECT_TRUE(current(x_));
  EXPECT_EQ(buffers_.use().computed, 0);
  EXPECT_EQ(buffers_.use().reused, 1);
  EXPECT_EQ(buffers_.use().peak, 1000u);  // it is still there
}

// Requests the spectra of a training step over a network's stride-1 layers as the engine does: 24 in four layers. The
// number of computed ones depends only on the budget.
std::int64_t computed_in_a_step(const std::vector<ConvProblem>& layers, double budget_gib) {
  struct NetLayer {
    FrequencyGrid grid;
    Tensor x, w, grad_y;
  };
  Context ctx;
  FrequencyBuffers buffers(static_cast<std::size_t>(budget_gib * (1 << 30)));
  std::vector<NetLayer> net;
  for (const ConvProblem& p : layers)
    net.push_back({whole_plane(p, least_height(p), least_width(p)), Tensor(*ctx.stream, p.input_shape()),
                   Tensor(*ctx.stream, p.weight_shape()), Tensor(*ctx.stream, p.output_shape())});
  const auto bytes_of = [&](std::size_t layer, ConvOperand operand) {
    const Planes planes = planes_of(layers[layer], operand, net[layer].grid);
    return static_cast<std::size_t>(planes.grid.bins() * planes.matrix_rows() * planes.columns) * 8;
  };
  const auto pass = [&](std::size_t layer, ConvOperand a, ConvOperand b, ConvOperand c) {
    const auto slot_of = [&](ConvOperand operand) {
      const Tensor& source = operand == ConvOperand::x   ? net[layer].x
                             : operand == ConvOperand::w ? net[layer].w
                                                         : net[layer].grad_y;
      return buffers.spectrum(*ctx.stream, {source, planes_of(layers[layer], operand, net[layer].grid), "kind"},
                              bytes_of(layer, operand), [](void*) {});
    };
    const auto factor_a = slot_of(a), factor_b = slot_of(b);
    const auto product = buffers.scratch(*ctx.stream, bytes_of(layer, c));
  };
  std::int64_t before = 0;
  using enum ConvOperand;
  for (int step = 0; step < 2; ++step) {
    before = buffers.use().computed;
    for (NetLayer& layer : net) layer.x.write(), layer.w.write(), layer.grad_y.write();
    for (std::size_t i = 0; i < net.size(); ++i) pass(i, x, w, y);
    for (std::size_t i = net.size(); i-- > 0;) pass(i, y, w, x), pass(i, y, x, w);
  }
  EXPECT_LE(buffers.use().peak, buffers.budget());
  return buffers.use().computed - before;
}

TEST(FrequencyBuffers, ReuseMoreSpectraWithLargerBudget) {
  const std::vector<ConvProblem> alexnet =
      conv_problems({"128x64x27x27 * 192x64x5x5 pad 2", "128x192x13x13 * 384x192x3x3 pad 1",
                     "128x384x13x13 * 256x384x3x3 pad 1", "128x256x13x13 * 256x256x3x3 pad 1"});
  EXPECT_EQ(computed_in_a_step(alexnet, 0.2), 18);
  EXPECT_EQ(computed_in_a_step(alexnet, 0.7), 12);
  const std::vector<ConvProblem> overfeat =
      conv_problems({"128x96x28x28 * 256x96x5x5", "128x256x12x12 * 512x256x3x3 pad 1",
                     "128x512x12x12 * 1024x512x3x3 pad 1", "128x1024x12x12 * 1024x1024x3x3 pad 1"});
  EXPECT_EQ(computed_in_a_step(overfeat, 1.4), 18);
  EXPECT_EQ(computed_in_a_step(overfeat, 2.8), 12);
}

}  // namespace
}  // namespace twiddle
