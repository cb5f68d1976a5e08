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

Tensor dropped(Stream& stream, const DropoutMask& mask, const Tensor& x) {
  Tensor y(stream, x.shape(), x.type());
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    map_indexed(stream, y.size(), mask, random_cost, y.write<T>(), x.read<T>());
  });
  return y;
}

}  // namespace

Dropout::Dropout(const Site& site, Params& params)
    : Layer(site.name, site.input), rate_(static_cast<float>(params.number("rate", 0.5, 0, 0.999))) {}

std::string Dropout::describe() const {
  return join("rate ", rate_);
}

Variable Dropout::forward(Context& ctx, const Variable& x) {
  if (!ctx.training || rate_ == 0) return x;
  const std::int64_t rows = x.value().dim(0);
  const DropoutMask mask{rate_, 1 / (1 - rate_),
                         ctx.random.take_rows(rows, x.value().size() / std::max<std::int64_t>(rows, 1))};
  return ctx.tape.record(
      name(), dropped(*ctx.stream, mask, x.value()), {x},
      [x, mask](Context& back, const Tensor& grad_y) { x.add_grad(back, dropped(*back.stream, mask, grad_y)); });
}

}  // namespace twiddle
