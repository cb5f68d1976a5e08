#include "layers/dropout.h"

#include "framework/for_each.h"
#include "framework/random.h"

namespace twiddle {

namespace {

constexpr std::int64_t random_cost = 8;  // simple operations that one random number is worth

// The mask is a function of the sequence and the position, so the backward pass makes it again instead of keeping it.
struct DropoutMask {
  float rate, scale;
  RandomSequence random;
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const float kept = x[i] * scale;  // made in any case, which leaves no branch
    y[i] = random.uniform(i) < rate ? 0 : kept;
  }
};

}  // namespace

Dropout::Dropout(const Site& site, Params& params)
    : Layer(site.name, site.input), rate_(static_cast<float>(params.number("rate", 0.5, 0, 0.999))) {}

std::string Dropout::describe() const {
  return join("rate ", rate_);
}

Variable Dropout::forward(Context& ctx, const Variable& x) {
  if (!ctx.training || rate_ == 0) return x;
  const float scale = 1 / (1 - rate_);
  const RandomSequence random = ctx.random.take(x.value().size());
  Tensor y(*ctx.stream, x.value().shape());
  for_each_index(*ctx.stream, y.size(), DropoutMask{rate_, scale, random, x.value().read(), y.write()}, random_cost);
  return ctx.tape.record(name(), y, {x}, [x, random, rate = rate_, scale](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, grad_y.shape());
    for_each_index(stream, grad_x.size(), DropoutMask{rate, scale, random, grad_y.read(), grad_x.write()}, random_cost);
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
