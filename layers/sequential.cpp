#include "layers/sequential.h"

#include <new>

#include "framework/error.h"
#include "framework/tensor_ops.h"

namespace twiddle {

namespace {

// A layer's output for a batch of 0 rows, if it has nothing to do for one.
Variable skip(const Layer& layer, Context& ctx, const Variable& x, const Variable* added) {
  const Shape shape = with_batch(0, layer.output_shape());
  const Variable other = added != nullptr ? *added : Variable();
  return ctx.tape.record(layer.name(), Tensor(*ctx.stream, shape, layer.output_type()), {x, other},
                         [x, other, nothing = x.value()](Context& back, const Tensor& grad_y) {
                           x.add_grad(back, nothing);
                           other.add_grad(back, grad_y);
                         });
}

Variable cast(Context& ctx, const std::string& name, const Variable& x, DType type) {
  const DType given = x.value().type();
  if (given == type) return x;
  return ctx.tape.record(
      name + " cast", cast(*ctx.stream, x.value(), type), {x},
      [x, given](Context& back, const Tensor& grad_y) { x.add_grad(back, cast(*back.stream, grad_y, given)); });
}

// The range of a layer that joins paths covers only its own part: the layers inside have separate ranges.
Variable forward_timed(Layer& layer, Context& ctx, const Variable& x, const Variable* added) {
  if (!layer.paths().empty()) return cast(ctx, layer.name(), layer.forward(ctx, x), layer.output_type());
  const ProfilerRange range(ctx.profiler, *ctx.stream, layer.name(), "forward");
  const auto readable = [&](const Variable& value) {
    return layer.takes_16_bits() ? value : cast(ctx, layer.name(), value, DType::f32);
  };
  const Variable read = readable(x), other = added != nullptr ? readable(*added) : Variable();
  const Variable y = added != nullptr ? layer.forward_with_sum(ctx, read, other) : layer.forward(ctx, read);
  const Variable stored = cast(ctx, layer.name(), y, layer.output_type());
  if (added != nullptr && &other.value() != &added->value()) other.drop_value();  // casts keep nothing
  for (const Variable& copy : {read, y})
    if (&copy.value() != &x.value() && &copy.value() != &stored.value()) copy.drop_value();
  return stored;
}

Variable forward_through(Layer& layer, Context& ctx, const Variable& x, const Variable* added) try {
  for (const Parameter& parameter : layer.parameters()) ctx.tape.before_read(parameter.variable);
  if (x.value().dim(0) == 0 && !layer.runs_without_rows()) return skip(layer, ctx, x, added);
  return forward_timed(layer, ctx, x, added);
} catch (const OutOfMemory& error) {
  throw OutOfMemory(join("layer '", layer.name(), "', forward: ", error.what()));
} catch (const std::bad_alloc&) {
  throw OutOfMemory(join("layer '", layer.name(), "', forward: out of memory on the host"));
}

}  // namespace

void Sequential::add(std::string kind, std::unique_ptr<Layer> layer, Place place) {
  layer->set_output_type(type_);
  items_.push_back({std::move(kind), std::move(layer), std::move(place)});
}

std::vector<const Sequential::Item*> Sequential::all_items() const {
  std::vector<const Item*> all;
  for (const Item& item : items_) {
    for (const Sequential* path : item.layer->paths()) {
      const std::vector<const Item*> inside = path->all_items();
      all.insert(all.end(), inside.begin(), inside.end());
    }
    all.push_back(&item);
  }
  return all;
}

const Shape& Sequential::output_shape() const {
  return items_.empty() ? input_ : items_.back().layer->output_shape();
}

std::vector<Parameter*> Sequential::parameters() const {
  std::vector<Parameter*> all;
  for (const Item* item : all_items())
    for (Parameter& parameter : item->layer->parameters()) all.push_back(&parameter);
  return all;
}

std::vector<const TunedConvolution*> Sequential::convolutions() const {
  std::vector<const TunedConvolution*> all;
  for (const Item* item : all_items())
    for (const TunedConvolution* convolution : item->layer->convolutions()) all.push_back(convolution);
  return all;
}

void Sequential::initialize(Context& ctx) const {
  for (Parameter* parameter : parameters()) twiddle::initialize(*ctx.stream, *parameter, ctx.random.seed());
}

Variable Sequential::forward(Context& ctx, const Variable& x, const Variable* added) const {
  const Shape expected = with_batch(x.value().shape().empty() ? 0 : x.value().dim(0), input_);
  require(x.value().shape() == expected, "the network expects batches of ", to_string(input_), ", got ",
          to_string(x.value().shape()));
  Variable current = cast(ctx, "input", x, type_);
  for (const Item& item : items_) {
    const bool last = &item == &items_.back();
    Variable next = forward_through(*item.layer, ctx, current, last ? added : nullptr);
    const bool passed_on = &current.value() == &next.value();  // dropout in evaluation hands its input through
    if (&current.value() != &x.value() && !passed_on) current.drop_value();
    current = std::move(next);
  }
  return current;
}

std::string Sequential::first_bad_layer(Context& ctx, const Variable& x) const {
  Variable current = cast(ctx, "input", x, type_);
  std::string bad;
  for (const Item& item : items_) {
    const Variable before = current;
    current = forward_through(*item.layer, ctx, before, nullptr);
    if (all_finite(*ctx.stream, current.value())) continue;
    for (const Sequential* path : item.layer->paths())
      if (bad.empty()) bad = path->first_bad_layer(ctx, before);
    if (bad.empty()) bad = item.layer->name();
    break;
  }
  ctx.tape.clear();
  return bad;
}

}  // namespace twiddle
