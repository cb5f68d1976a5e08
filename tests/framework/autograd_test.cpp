#include "framework/autograd.h"

#include <gtest/gtest.h>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/tensor_ops.h"

namespace twiddle {
namespace {

Variable number(Context& ctx, float value, bool needs_grad = true) {
  return Variable(Tensor::filled(*ctx.stream, {1}, value), needs_grad);
}

float read(Context& ctx, const Tensor& tensor) {
  return tensor.to_vector(*ctx.stream).at(0);
}

Tensor scaled(Context& ctx, float factor, const Tensor& x) {
  std::vector<float> values = x.to_vector(*ctx.stream);
  for (float& value : values) value *= factor;
  return Tensor::from(*ctx.stream, x.shape(), values);
}

// factor x x, written as a layer would write it.
Variable times(Context& ctx, float factor, const Variable& x) {
  const Tensor y = scaled(ctx, factor, x.value());
  return ctx.tape.record("times", y, {x}, [x, factor](Context& backward_ctx, const Tensor& grad_y) {
    x.add_grad(backward_ctx, scaled(backward_ctx, factor, grad_y));
  });
}

TEST(Tape, ChainsGradients) {
  Context ctx;
  const Variable x = number(ctx, 5);
  const Variable y = times(ctx, 3, times(ctx, 2, x));
  ctx.tape.backward(ctx, y);
  EXPECT_EQ(read(ctx, y.value()), 30);
  EXPECT_EQ(read(ctx, x.grad()), 6);
  EXPECT_TRUE(ctx.tape.empty());
}

TEST(Tape, StartsFromAFactor) {
  Context ctx;
  const Variable x = number(ctx, 5);
  ctx.tape.backward(ctx, times(ctx, 3, x), Tensor::filled(*ctx.stream, {1}, 0.25F));
  EXPECT_EQ(read(ctx, x.grad()), 0.75F);
}

// Whether an op computes it there, or elsewhere, or in several parts.
TEST(Variable, UsesGivenGradientBuffer) {
  Context ctx;
  const Variable x = number(ctx, 5);
  const Tensor buffer = Tensor::filled(*ctx.stream, {1}, 7);
  x.set_grad_buffer(buffer);
  EXPECT_EQ(x.new_grad(*ctx.stream).read(), buffer.read());
  x.add_grad(ctx, Tensor::filled(*ctx.stream, {1}, 2));
  EXPECT_EQ(read(ctx, buffer), 2);
  EXPECT_NE(x.new_grad(*ctx.stream).read(), buffer.read()) << "it is in use";
  const Tensor other = Tensor::filled(*ctx.stream, {1}, 3);
  x.add_grad(ctx, other);
  EXPECT_EQ(read(ctx, buffer), 5);
  EXPECT_EQ(read(ctx, other), 3);
  x.clear_grad();
  Tensor made = x.new_grad(*ctx.stream);
  ctx.stream->fill(made.write(), 1, 4);
  x.add_grad(ctx, made);
  EXPECT_EQ(read(ctx, x.grad()), 4);
  EXPECT_EQ(x.grad().read(), buffer.read());
}

TEST(Tape, AddsGradientsOfBranches) {
  Context ctx;
  const Variable x = number(ctx, 1);
  const Variable a = times(ctx, 2, x), b = times(ctx, 5, x);
  Tensor sum(*ctx.stream, {1});
  add(*ctx.stream, a.value(), b.value(), sum);
  const Variable y = ctx.tape.record("add", sum, {a, b}, [a, b](Context& backward_ctx, const Tensor& grad) {
    a.add_grad(backward_ctx, grad);
    b.add_grad(backward_ctx, grad);
  });
  ctx.tape.backward(ctx, y);
  EXPECT_EQ(read(ctx, x.grad()), 7);
}

// Counts the complete gradients of one variable, and remembers the latest.
class GradientCount final : public TapeHooks {
 public:
  GradientCount(Context& ctx, const Variable& x) : ctx_(ctx), x_(x) { ctx_.tape.set_hooks(this); }
  void before_read(const Variable&) override {}
  void gradient_complete(const Variable& variable) override {
    if (&variable.value() == &x_.value()) ++count, latest = read(ctx_, variable.grad());
  }
  int count = 0;
  float latest = 0;

 private:
  Context& ctx_;
  const Variable x_;
};

TEST(Tape, ReportsCompleteGradientOnce) {
  Context ctx;
  const Variable x = number(ctx, 1);
  GradientCount hooks(ctx, x);
  const Variable a = times(ctx, 2, times(ctx, 3, x)), unused = times(ctx, 5, x), b = times(ctx, 7, x);
  Tensor sum(*ctx.stream, {1});
  add(*ctx.stream, a.value(), b.value(), sum);
  const Variable y = ctx.tape.record("add", sum, {a, b}, [a, b](Context& backward_ctx, const Tensor& grad) {
    a.add_grad(backward_ctx, grad);
    b.add_grad(backward_ctx, grad);
  });
  ctx.tape.backward(ctx, y);
  EXPECT_EQ(hooks.count, 1);
  EXPECT_EQ(hooks.latest, 13);
}

TEST(Tape, ReportsNoUnreachedGradient) {
  Context ctx;
  const Variable x = number(ctx, 1);
  GradientCount hooks(ctx, x);
  const Variable y = times(ctx, 2, number(ctx, 1)), unused = times(ctx, 5, x);
  ctx.tape.backward(ctx, y);
  EXPECT_EQ(hooks.count, 0);
}

TEST(Tape, RecordsNothingWithoutGradients) {
  Context ctx;
  times(ctx, 2, number(ctx, 1, false));
  EXPECT_TRUE(ctx.tape.empty());
  const EvaluationMode evaluating(ctx);
  EXPECT_FALSE(times(ctx, 2, number(ctx, 1)).needs_grad());
  EXPECT_TRUE(ctx.tape.empty());
}

TEST(Tape, FreesActivationsDuringBackward) {
  Context ctx;
  Tensor kept = Tensor::filled(*ctx.stream, {1}, 1);
  const Variable x = number(ctx, 1);
  Variable y = ctx.tape.record("holder", kept, {x}, [kept](Context&, const Tensor&) {});
  y = times(ctx, 1, y);
  const std::weak_ptr<const void> life = kept.life();
  kept = {};
  EXPECT_FALSE(life.expired());
  ctx.tape.backward(ctx, y);
  EXPECT_TRUE(life.expired());
}

TEST(Tape, ClearsGradientsAfterException) {
  Context ctx;
  const Variable x = number(ctx, 1);
  const Variable bad = ctx.tape.record("bad", x.value(), {x}, [](Context&, const Tensor&) { throw Error("broken"); });
  const Variable y = times(ctx, 1, bad);
  EXPECT_THROW(ctx.tape.backward(ctx, y), Error);
  EXPECT_TRUE(ctx.tape.empty());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Variable, RefusesGradientOfAnotherShape) {
  Context ctx;
  const Variable x = number(ctx, 1);
  EXPECT_THROW(x.add_grad(ctx, Tensor::filled(*ctx.stream, {2}, 1)), Error);
}

TEST(Tape, RefusesNonScalarOutput) {
  Context ctx;
  EXPECT_THROW(ctx.tape.backward(ctx, Variable(Tensor::filled(*ctx.stream, {2}, 1), true)), Error);
}

}  // namespace
}  // namespace twiddle
