#include "framework/error.h"
#include "framework/for_each.h"
#include "framework/text.h"
#include "layers/branches.h"
#include "layers/elementwise.h"
#include "layers/relu_functors.h"

namespace twiddle {

namespace {

struct Add {
  TWIDDLE_HD float operator()(float a, float b) const { return a + b; }
};

struct AddAndRelu {
  TWIDDLE_HD float operator()(float a, float b) const { return ReluForward{}(a + b); }
};

struct Multiply {
  TWIDDLE_HD float operator()(float a, float b) const { return a * b; }
};

// Copies rows of `row` numbers between tensors whose rows are `from_row` and `to_row` long.
template <class T>
struct CopyRows {
  Divisor row;
  std::int64_t from_row, to_row;
  const T* from;
  T* to;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t index = row.quotient(i), column = i - index * row.value();
    to[index * to_row + column] = from[index * from_row + column];
  }
};

Tensor sum_of(Stream& stream, const std::vector<Tensor>& parts, bool relu) {
  Tensor sum = parts.at(0);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    sum = relu && last ? map_tensors(stream, AddAndRelu{}, 1, sum, parts[i])
                       : map_tensors(stream, Add{}, 1, sum, parts[i]);
  }
  return sum;
}

// The product of all values but one; `start` is the first factor.
Tensor product_of(Stream& stream, Tensor start, const std::vector<Tensor>& factors, std::size_t but) {
  for (std::size_t i = 0; i < factors.size(); ++i)
    if (i != but) start = map_tensors(stream, Multiply{}, 1, start, factors[i]);
  return start;
}

std::int64_t row_of(const Shape& batched) {
  return count_of({batched.begin() + 1, batched.end()});
}

Tensor concatenation_of(Stream& stream, const std::vector<Tensor>& parts, const Shape& batched) {
  Tensor whole(stream, batched, parts.at(0).type());
  std::int64_t offset = 0;
  for (const Tensor& part : parts) {
    const std::int64_t row = row_of(part.shape());
    with_type(whole.type(), [&](auto t) {
      using T = decltype(t);
      for_each_index(stream, part.size(),
                     CopyRows<T>{Divisor(row), row, row_of(batched), part.read<T>(), whole.write<T>() + offset});
    });
    offset += row;
  }
  return whole;
}

Tensor part_of(Stream& stream, const Tensor& whole, std::int64_t offset, const Shape& batched) {
  Tensor part(stream, batched, whole.type());
  const std::int64_t row = row_of(batched);
  with_type(whole.type(), [&](auto t) {
    using T = decltype(t);
    for_each_index(stream, part.size(),
                   CopyRows<T>{Divisor(row), row_of(whole.shape()), row, whole.read<T>() + offset, part.write<T>()});
  });
  return part;
}

bool fit(Join join, Shape a, Shape b) {
  if (join == Join::concat && !a.empty() && !b.empty()) a[0] = b[0] = 0;
  return a == b;
}

Shape joined_shape(Join join, const std::vector<Branches::Path>& paths) {
  Shape shape = paths.at(0).layers.output_shape();
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const Shape& other = paths[i].layers.output_shape();
    if (!fit(join, shape, other)) {
      std::vector<std::string> given;
      for (const Branches::Path& path : paths)
        given.push_back(join_names({"'" + path.name + "' gives", to_string(path.layers.output_shape())}, " "));
      throw Error(twiddle::join("paths joined by '", to_string(join), "' must give ",
                                join == Join::concat ? "planes of the same size" : "the same shape", ": ",
                                join_names(given, ", ")));
    }
    if (join == Join::concat) shape[0] += other[0];
  }
  return shape;
}

}  // namespace

const char* to_string(Join join) {
  return join == Join::add ? "add" : join == Join::concat ? "concat" : "multiply";
}

Branches::Branches(std::string name, Join join, std::vector<Path> paths)
    : Layer(std::move(name), joined_shape(join, paths)), join_(join), paths_(std::move(paths)) {
  if (join_ != Join::add || paths_.size() != 2) return;
  for (std::size_t i = 0; i < paths_.size() && adder_ == nullptr; ++i) {
    const std::vector<Sequential::Item>& layers = paths_[i].layers.items();
    if (layers.empty() || !layers.back().layer->take_over_sum()) continue;
    adding_path_ = i;
    adder_ = layers.back().layer.get();
  }
}

bool Branches::take_over_relu() {
  if (adder_ != nullptr) return relu_ = adder_->take_over_relu();
  return relu_ = join_ == Join::add;
}

std::size_t Branches::kept_bytes() const {
  std::size_t bytes = 0;
  if (join_ == Join::multiply)
    for (const Path& path : paths_)
      bytes += static_cast<std::size_t>(count_of(path.layers.output_shape()) * size_of(path.layers.type()));
  return bytes;
}

std::string Branches::describe() const {
  const std::string by = adder_ != nullptr ? twiddle::join(", done by '", adder_->name(), "'") : "";
  return twiddle::join(to_string(join_), " of ", paths_.size(), relu_ ? " paths, relu" : " paths", by);
}

std::vector<const Sequential*> Branches::paths() const {
  std::vector<const Sequential*> all;
  for (const Path& path : paths_) all.push_back(&path.layers);
  return all;
}

// What the tape does not hold of the other path's output is freed once it is added.
Variable Branches::forward_in_adder(Context& ctx, const Variable& x) const {
  const Variable other = paths_[1 - adding_path_].layers.forward(ctx, x);
  const Variable y = paths_[adding_path_].layers.forward(ctx, x, &other);
  if (&other.value() != &x.value()) other.drop_value();
  return y;
}

Variable Branches::forward(Context& ctx, const Variable& x) {
  if (adder_ != nullptr) return forward_in_adder(ctx, x);
  std::vector<Variable> outputs;
  std::vector<Tensor> values;
  for (const Path& path : paths_) {
    outputs.push_back(path.layers.forward(ctx, x));
    values.push_back(outputs.back().value());
    // The tape holds every output; what the join does not need for its backward pass is freed with `values`. The input
    // belongs to the caller.
    if (&outputs.back().value() != &x.value()) outputs.back().drop_value();
  }
  const ProfilerRange range(ctx.profiler, *ctx.stream, name(), "forward");
  Stream& stream = *ctx.stream;
  if (join_ == Join::add) {
    const Tensor y = sum_of(stream, values, relu_);
    return ctx.tape.record(
        name(), y, outputs, [outputs, output = relu_ ? y : Tensor()](Context& back, const Tensor& grad_y) {
          const Tensor grad = output.defined() ? map_tensors(*back.stream, ReluBackward{}, 1, output, grad_y) : grad_y;
          for (const Variable& each : outputs) each.add_grad(back, grad);
        });
  }
  if (join_ == Join::multiply) {
    const Tensor y = product_of(stream, values.at(0), values, 0);
    return ctx.tape.record(name(), y, outputs, [outputs, values](Context& back, const Tensor& grad_y) {
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].needs_grad()) outputs[i].add_grad(back, product_of(*back.stream, grad_y, values, i));
    });
  }
  std::vector<Shape> shapes;
  for (const Tensor& value : values) shapes.push_back(value.shape());
  return ctx.tape.record(name(), concatenation_of(stream, values, with_batch(x.value().dim(0), output_shape())),
                         outputs, [outputs, shapes](Context& back, const Tensor& grad_y) {
                           std::int64_t offset = 0;
                           for (std::size_t i = 0; i < outputs.size(); ++i) {
                             if (outputs[i].needs_grad())
                               outputs[i].add_grad(back, part_of(*back.stream, grad_y, offset, shapes[i]));
                             offset += row_of(shapes[i]);
                           }
                         });
}

}  // namespace twiddle
