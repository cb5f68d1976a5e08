#pragma once
#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace twiddle {

// Layers in a row, and the kind by which the YAML called each ("conv2d").
class Sequential {
 public:
  struct Item {
    std::string kind;
    std::unique_ptr<Layer> layer;
  };

  explicit Sequential(Shape input) : input_(std::move(input)) {}
  void add(std::string kind, std::unique_ptr<Layer> layer);
  const std::vector<Item>& items() const { return items_; }
  const Shape& input_shape() const { return input_; }
  const Shape& output_shape() const;
  std::vector<Parameter*> parameters() const;       // in layer order
  std::vector<const Conv2d*> convolutions() const;  // likewise

  void initialize(Context& ctx) const;  // allocates and fills every parameter from ctx.random's seed
  Variable forward(Context& ctx, const Variable& x) const;  // each layer inside a profiler range of its name
  // The name of the first layer whose output holds a value that is not finite; empty where all are finite.
  std::string first_bad_layer(Context& ctx, const Variable& x) const;

 private:
  Shape input_;
  std::vector<Item> items_;
};

}  // namespace twiddle
