#include "layers/drop_path.h"

#include "framework/config/params.h"
#include "framework/for_each.h"
#include "framework/random.h"

namespace twiddle {

namespace {

// One row per image. The dropped images depend only on the sequence and the image, so the backward pass recomputes
// them.
struct DropImages {
  float rate, scale;
  RandomSequence random;
  struct Row {
    bool dropped;
    float scale;
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return dropped ? 0 : x * scale; }
  };
  TWIDDLE_HD Row row(std::int64_t image) const { return {random.uniform(image) < rate, scale}; }
};

Tensor dropped(Stream& stream, const DropImages& drop, const Tensor& x) {
  Tensor y(stream, x.shape(), x.type());
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    map_rows(stream, x.dim(0), x.size() / x.dim(0), drop, 1, y.write<T>(), x.read<T>());
  });
  return y;
}

}  // namespace

DropPath::DropPath(const Site& site, Params& params)
    : Layer(site.name, site.input), rate_(static_cast<float>(params.number("rate", std::nullopt, 0, 0.999))) {}

std::string DropPath::describe() const {
  return join("rate ", rate_);
}

Variable DropPath::forward(Context& ctx, const Variable& x) {
  if (!ctx.training || rate_ == 0) return x;
  const DropImages drop{rate_, 1 / (1 - rate_), ctx.random.take_rows(x.value().dim(0), 1)};
  return ctx.tape.record(name(), dropped(*ctx.stream, drop, x.value()), {x},
                         [x, drop](Context& backward_ctx, const Tensor& grad_y) {
                           x.add_grad(backward_ctx, dropped(*backward_ctx.stream, drop, grad_y));
                         });
}

}  // namespace twiddle
