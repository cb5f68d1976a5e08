#include "models/checkpoints/merge_layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "models/config/layer_list.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

std::vector<float> floats_of(const HostArray& array) {
  std::vector<float> values(array.bytes.size() / sizeof(float));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

HostArray array_of(Shape shape, const std::vector<float>& values) {
  HostArray array{DType::f32, std::move(shape), std::vector<std::uint8_t>(values.size() * sizeof(float))};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

// An item of a list of layers, under its full name.
struct NamedLayer {
  ConfigNode* item;
  std::string name;

  NamedLayer(ConfigNode& in_list, const std::string& prefix) : item(&in_list), name(prefix + layer_name(in_list)) {}
  const std::string& kind() const { return item->entries.front().key; }
  ConfigNode& options() const { return item->entries.front().value; }
  std::string option(const std::string& key) const {
    const ConfigNode* value = options().find(key);
    return value == nullptr ? std::string() : value->text;
  }
  void set_option(const std::string& key, const std::string& value) const {
    for (ConfigNode::Entry& entry : options().entries)
      if (entry.key == key) entry.value.text = value;
  }
};

struct Size {
  std::int64_t height, width;
  bool operator==(const Size&) const = default;
};

// "3" or "[1, 31]".
Size size_option(const NamedLayer& layer, const std::string& key) {
  const ConfigNode& value = *layer.options().find(key);
  const bool two = value.kind == Kind::sequence;
  return {std::stoll(two ? value.items.at(0).text : value.text), std::stoll(two ? value.items.at(1).text : value.text)};
}

// How far the small kernel's first row and column lie from the large one's; none where their middles do not coincide.
std::optional<Size> offset_inside(const NamedLayer& small, const NamedLayer& large) {
  const Size kernel = size_option(small, "kernel"), whole = size_option(large, "kernel");
  const Size pad = size_option(small, "pad"), whole_pad = size_option(large, "pad");
  const Size offset{whole_pad.height - pad.height, whole_pad.width - pad.width};
  const bool middle =
      whole.height == kernel.height + 2 * offset.height && whole.width == kernel.width + 2 * offset.width;
  return middle && offset.height >= 0 && offset.width >= 0 ? std::optional(offset) : std::nullopt;
}

class Merger {
 public:
  explicit Merger(std::map<std::string, HostArray> weights) { merged_.weights = std::move(weights); }

  // `prefix`: what the names in the list have before them.
  ConfigNode merge(ConfigNode list, const std::string& prefix) {
    std::vector<ConfigNode> merged;
    for (ConfigNode& item : list.items) {
      const NamedLayer layer(item, prefix);
      for (ConfigNode* path : path_lists(layer.kind(), layer.options()))
        *path = merge(std::move(*path), layer.name + ".");
      const std::vector<NamedLayer> summed = summands(layer);
      if (!summed.empty()) {
        merged.push_back(merge_sum(layer, summed));
      } else if (layer.kind() == "batch_norm" && !merged.empty() &&
                 NamedLayer(merged.back(), prefix).kind() == "conv2d") {
        merge_norm(NamedLayer(merged.back(), prefix), layer);
      } else {
        merged.push_back(std::move(item));
      }
    }
    list.items = std::move(merged);
    return list;
  }

  MergedLayers take(ConfigNode layers) {
    merged_.layers = std::move(layers);
    return std::move(merged_);
  }

 private:
  std::vector<float> values(const std::string& name) const { return floats_of(merged_.weights.at(name)); }

  // Zeros where the convolution has none.
  std::vector<float> bias_of(const NamedLayer& convolution, std::size_t filters) const {
    return convolution.option("bias") == "true" ? values(convolution.name + ".bias") : std::vector<float>(filters, 0);
  }

  // Not those of a layer that is called `NAME.other`: names may hold dots.
  void erase(const NamedLayer& layer) {
    std::erase_if(merged_.weights,
                  [&](const auto& entry) { return entry.first.substr(0, entry.first.rfind('.')) == layer.name; });
  }

  void put(const NamedLayer& convolution, Shape shape, const std::vector<float>& weight,
           const std::vector<float>& bias) {
    convolution.set_option("bias", "true");
    merged_.weights[convolution.name + ".bias"] = array_of({shape.at(0)}, bias);
    merged_.weights[convolution.name + ".weight"] = array_of(std::move(shape), weight);
  }

  // y = scale (w x + b - mean) / sqrt(variance + epsilon) + shift.
  void merge_norm(const NamedLayer& convolution, const NamedLayer& norm) {
    const std::vector<float> scale = values(norm.name + ".scale"), shift = values(norm.name + ".bias");
    const std::vector<float> mean = values(norm.name + ".running_mean"), variance = values(norm.name + ".running_var");
    const double epsilon = std::stod(norm.option("epsilon"));
    const Shape shape = merged_.weights.at(convolution.name + ".weight").shape;
    std::vector<float> weight = values(convolution.name + ".weight");
    std::vector<float> bias = bias_of(convolution, scale.size());
    const std::size_t taps = weight.size() / scale.size();
    for (std::size_t i = 0; i < scale.size(); ++i) {
      const double factor = scale[i] / std::sqrt(variance[i] + epsilon);
      bias[i] = static_cast<float>(factor * (static_cast<double>(bias[i]) - mean[i]) + shift[i]);
      for (std::size_t k = i * taps; k < (i + 1) * taps; ++k) weight[k] = static_cast<float>(factor * weight[k]);
    }
    put(convolution, shape, weight, bias);
    erase(norm);
    ++merged_.norms;
  }

  static const NamedLayer& largest_kernel(const std::vector<NamedLayer>& convolutions) {
    const auto area = [](const NamedLayer& each) {
      const Size kernel = size_option(each, "kernel");
      return kernel.height * kernel.width;
    };
    return *std::max_element(convolutions.begin(), convolutions.end(),
                             [&](const NamedLayer& a, const NamedLayer& b) { return area(a) < area(b); });
  }

  // The convolutions that a layer sums up, if all its paths are one each, over the same inputs, and their kernels have
  // the same middle; else none.
  static std::vector<NamedLayer> summands(const NamedLayer& layer) {
    const bool adds = layer.kind() == "residual" || (layer.kind() == "parallel" && layer.option("join") == "add");
    const std::vector<ConfigNode*> paths = path_lists(layer.kind(), layer.options());
    if (!adds || paths.size() < 2) return {};
    std::vector<NamedLayer> all;
    for (ConfigNode* path : paths) {
      if (path->items.size() != 1) return {};
      all.emplace_back(path->items.front(), layer.name + ".");
      if (all.back().kind() != "conv2d") return {};
    }
    const NamedLayer& large = largest_kernel(all);
    const bool alike = std::all_of(all.begin(), all.end(), [&large](const NamedLayer& each) {
      return size_option(each, "stride") == size_option(large, "stride") &&
             each.option("groups") == large.option("groups") && size_option(each, "dilation") == Size{1, 1} &&
             offset_inside(each, large).has_value();
    });
    return alike ? all : std::vector<NamedLayer>();
  }

  ConfigNode merge_sum(const NamedLayer& sum, const std::vector<NamedLayer>& summed) {
    const NamedLayer& large = largest_kernel(summed);
    const Shape shape = merged_.weights.at(large.name + ".weight").shape;
    std::vector<float> weight(static_cast<std::size_t>(count_of(shape))), bias(static_cast<std::size_t>(shape.at(0)));
    for (const NamedLayer& each : summed) {
      add_kernel(each, *offset_inside(each, large), shape, weight);
      const std::vector<float> part = bias_of(each, bias.size());
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += part[i];
    }
    for (const NamedLayer& each : summed) erase(each);
    large.set_option("name", layer_name(*sum.item));
    NamedLayer merged = large;
    merged.name = sum.name;
    put(merged, shape, weight, bias);
    ++merged_.sums;
    return *large.item;
  }

  // Adds the planes of a kernel to the larger planes of another.
  void add_kernel(const NamedLayer& convolution, Size offset, const Shape& shape, std::vector<float>& whole) const {
    const std::vector<float> part = values(convolution.name + ".weight");
    const Size kernel = size_option(convolution, "kernel");
    const std::int64_t planes = shape.at(0) * shape.at(1);
    for (std::int64_t plane = 0; plane < planes; ++plane)
      for (std::int64_t row = 0; row < kernel.height; ++row)
        for (std::int64_t column = 0; column < kernel.width; ++column) {
          const std::int64_t whole_row = plane * shape.at(2) + row + offset.height;
          whole[static_cast<std::size_t>(whole_row * shape.at(3) + column + offset.width)] +=
              part[static_cast<std::size_t>((plane * kernel.height + row) * kernel.width + column)];
        }
  }

  MergedLayers merged_;
};

}  // namespace

MergedLayers merge_layers(ConfigNode layers, std::map<std::string, HostArray> weights) {
  Merger merger(std::move(weights));
  return merger.take(merger.merge(std::move(layers), ""));
}

ConfigNode with_layers(ConfigNode tree, const ConfigNode& layers) {
  for (ConfigNode::Entry& section : tree.entries) {
    if (section.key == "model")
      for (ConfigNode::Entry& entry : section.value.entries)
        if (entry.key == "layers") entry.value = layers;
    if (section.key == "train")
      std::erase_if(section.value.entries, [](const ConfigNode::Entry& entry) {
        return entry.key == "freeze" || entry.key == "learning_rates";
      });
  }
  return tree;
}

}  // namespace twiddle
