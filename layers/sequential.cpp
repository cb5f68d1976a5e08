#include "layers/sequential.h"

#include "framework/error.h"
#include "framework/tensor_ops.h"

namespace twiddle {

namespace {

Variable forward_through(Layer& layer, Context& ctx, const Variable& x) try {
  return layer.forward(ctx, x);
} catch (const OutOfMemory& error) {
  throw OutOfMemory(join("layer '", layer.name(), "', forward: ", error.what()));
}

}  // namespace

void Sequential::add(std::string kind, std::unique_ptr<Layer> layer) {
  items_.push_back({std::move(kind), std::move(layer)});
}

const Shape& Sequential::output_shape() const {
  return items_.empty() ? input_ : items_.back().layer->output_shape();
}

std::vector<Parameter*> Sequential::parameters() const {
  std::vector<Parameter*> all;
  for (const Item& item : items_)
    for (Parameter& parameter : item.layer->parameters()) all.push_back(&parameter);
  return all;
}

std::vector<const Conv2d*> Sequential::convolutions() const {
  std::vector<const Conv2d*> all;
  for (const Item& item : items_)
    for (const Conv2d* convolution : item.layer->convolutions()) all.push_back(convolution);
  return all;
}

void Sequential::initialize(Context& ctx) const {
  for (Parameter* parameter : parameters()) twiddle::initialize(*ctx.stream, *parameter, ctx.random.seed());
}

Variable Sequential::forward(Context& ctx, const Variable& x) const {
  Shape expected = input_;
  expected.insert(expected.begin(), x.value().shape().empty() ? 0 : x.value().dim(0));
  require(x.value().shape() == expected, "the network expects batches of ", to_string(input_), ", got ",
          to_string(x.value().shape()));
  Variable current = x;
  for (const Item& item : items_) {
    const ProfilerRange range(ctx.profiler, *ctx.stream, item.layer->name(), "forward");
    Variable next = forward_through(*item.layer, ctx, current);
    const bool passed_on = &current.value() == &next.value();  // dropout in evaluation hands its input through
    if (&current.value() != &x.value() && !passed_on) current.drop_value();
    current = std::move(next);
  }
  return current;
}

std::string Sequential::first_bad_layer(Context& ctx, const Variable& x) const {
  Variable current = x;
  std::string bad;
  for (const Item& item : items_) {
    current = item.layer->forward(ctx, current);
    if (all_finite(*ctx.stream, current.value())) continue;
    bad = item.layer->name();
    break;
  }
  ctx.tape.clear();
  return bad;
}

}  // namespace twiddle
