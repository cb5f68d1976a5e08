#include "layers/dropout.h"

#include <algorithm>

#include "framework/config/params.h"
#include "framework/for_each.h"
#include "framework/random.h"

namespace twiddle {

namespace {

constexpr std::int64_t random_cost = 8;  // simple operations that one random number is worth

// The mask is a function of the sequence and the position, so the backward pass makes it again instead of keeping it.
struct DropoutMask {
  float rate, scale;
  RandomSequence random;
  TWIDDLE_HD float operator()(std::int64_t i, float x) const {
    const float kept = x * scale;  // made in any case, which leaves no branch
    return random.uniform(i) < rate ? 0 : kept;
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
  const std::int64_t rows = x.value().dim(0);
  const RandomSequence random = ctx.random.take_rows(rows, x.value().size() / std::max<std::int64_t>(rows, 1));
  Tensor y(*ctx.stream, x.value().shape());
  map_indexed(*ctx.stream, y.size(), DropoutMask{rate_, scale, random}, random_cost, y.write(), x.value().read());
  return ctx.tape.record(name(), y, {x}, [x, random, rate = rate_, scale](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, grad_y.shape());
    map_indexed(stream, grad_x.size(), DropoutMask{rate, scale, random}, random_cost, grad_x.write(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
