#pragma once
#include <memory>
#include <string>
#include <vector>

#include "framework/place.h"
#include "layers/layer.h"

namespace twiddle {

// Layers in a row, the kind by which the YAML called each ("conv2d"), and where. A layer may itself join several paths
// of layers.
class Sequential {
 public:
  struct Item {
    std::string kind;
    std::unique_ptr<Layer> layer;
    Place place = {};
  };

  // Elements between layers are of `type`.
  explicit Sequential(Shape input, DType type = DType::f32) : input_(std::move(input)), type_(type) {}
  void add(std::string kind, std::unique_ptr<Layer> layer, Place place = {});
  const std::vector<Item>& items() const { return items_; }
  std::vector<const Item*> all_items() const;  // those inside paths too, each path's before the layer that joins them
  const Shape& input_shape() const { return input_; }
  DType type() const { return type_; }
  const Shape& output_shape() const;
  std::vector<Parameter*> parameters() const;                 // in the order of all_items()
  std::vector<const TunedConvolution*> convolutions() const;  // in the same order

  void initialize(Context& ctx) const;  // allocates and fills every parameter from ctx.random's seed
  // Each layer inside a profiler range of its name. `added`: what the last layer, which took over the sum, adds.
  Variable forward(Context& ctx, const Variable& x, const Variable* added = nullptr) const;
  // The name of the first layer whose output holds a value that is not finite; empty where all are finite.
  std::string first_bad_layer(Context& ctx, const Variable& x) const;

 private:
  Shape input_;
  DType type_;
  std::vector<Item> items_;
};

}  // namespace twiddle
