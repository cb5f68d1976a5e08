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

std::string option(const LayerConfig& layer, const std::string& key) {
  const ConfigNode* value = layer.options.find(key);
  return value == nullptr ? std::string() : value->text;
}

void set_option(LayerConfig& layer, const std::string& key, const std::string& value) {
  for (ConfigNode::Entry& entry : layer.options.entries)
    if (entry.key == key) entry.value.text = value;
}

struct Size {
  std::int64_t height, width;
  bool operator==(const Size&) const = default;
};

// "3" or "[1, 31]".
Size size_option(const LayerConfig& layer, const std::string& key) {
  const ConfigNode& value = *layer.options.find(key);
  const bool two = value.kind == Kind::sequence;
  return {std::stoll(two ? value.items.at(0).text : value.text), std::stoll(two ? value.items.at(1).text : value.text)};
}

// How far the small kernel's first row and column lie from the large one's; none where their middles do not coincide.
std::optional<Size> offset_inside(const LayerConfig& small, const LayerConfig& large) {
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

  std::vector<LayerConfig> merge(std::vector<LayerConfig> layers) {
    std::vector<LayerConfig> result;
    for (LayerConfig& layer : layers) {
      for (std::vector<LayerConfig>& path : layer.paths) path = merge(std::move(path));
      if (is_sum_of_convolutions(layer)) {
        result.push_back(merge_sum(layer));
      } else if (layer.kind == "batch_norm" && !result.empty() && result.back().kind == "conv2d") {
        merge_norm(result.back(), layer);
      } else {
        result.push_back(std::move(layer));
      }
    }
    return result;
  }

  MergedLayers take(std::vector<LayerConfig> layers) {
    merged_.layers = std::move(layers);
    return std::move(merged_);
  }

 private:
  std::vector<float> values(const std::string& name) const { return floats_of(merged_.weights.at(name)); }

  // Zeros where the convolution has none.
  std::vector<float> bias_of(const LayerConfig& convolution, std::size_t filters) const {
    return option(convolution, "bias") == "true" ? values(convolution.name + ".bias") : std::vector<float>(filters, 0);
  }

  // Not those of a layer that is called `NAME.other`: names may hold dots.
  void erase(const LayerConfig& layer) {
    std::erase_if(merged_.weights,
                  [&](const auto& entry) { return entry.first.substr(0, entry.first.rfind('.')) == layer.name; });
  }

  void put(LayerConfig& convolution, Shape shape, const std::vector<float>& weight, const std::vector<float>& bias) {
    set_option(convolution, "bias", "true");
    merged_.weights[convolution.name + ".bias"] = array_of({shape.at(0)}, bias);
    merged_.weights[convolution.name + ".weight"] = array_of(std::move(shape), weight);
  }

  // y = scale (w x + b - mean) / sqrt(variance + epsilon) + shift.
  void merge_norm(LayerConfig& convolution, const LayerConfig& norm) {
    const std::vector<float> scale = values(norm.name + ".scale"), shift = values(norm.name + ".bias");
    const std::vector<float> mean = values(norm.name + ".running_mean"), variance = values(norm.name + ".running_var");
    const double epsilon = std::stod(option(norm, "epsilon"));
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

  static const LayerConfig& largest_kernel(const LayerConfig& sum) {
    const auto area = [](const std::vector<LayerConfig>& path) {
      const Size kernel = size_option(path.front(), "kernel");
      return kernel.height * kernel.width;
    };
    return std::max_element(sum.paths.begin(), sum.paths.end(),
                            [&](const auto& a, const auto& b) { return area(a) < area(b); })
        ->front();
  }

  // All paths are one convolution each, over the same inputs, and their kernels have the same middle.
  static bool is_sum_of_convolutions(const LayerConfig& layer) {
    const bool adds = layer.kind == "residual" || (layer.kind == "parallel" && option(layer, "join") == "add");
    if (!adds || layer.paths.size() < 2) return false;
    for (const std::vector<LayerConfig>& path : layer.paths)
      if (path.size() != 1 || path.front().kind != "conv2d") return false;
    const LayerConfig& large = largest_kernel(layer);
    return std::all_of(layer.paths.begin(), layer.paths.end(), [&](const std::vector<LayerConfig>& path) {
      const LayerConfig& each = path.front();
      return size_option(each, "stride") == size_option(large, "stride") &&
             option(each, "groups") == option(large, "groups") && size_option(each, "dilation") == Size{1, 1} &&
             offset_inside(each, large).has_value();
    });
  }

  LayerConfig merge_sum(const LayerConfig& sum) {
    const LayerConfig& large = largest_kernel(sum);
    const Shape shape = merged_.weights.at(large.name + ".weight").shape;
    std::vector<float> weight(static_cast<std::size_t>(count_of(shape))), bias(static_cast<std::size_t>(shape.at(0)));
    for (const std::vector<LayerConfig>& path : sum.paths) {
      add_kernel(path.front(), *offset_inside(path.front(), large), shape, weight);
      const std::vector<float> part = bias_of(path.front(), bias.size());
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += part[i];
    }
    LayerConfig merged = large;
    merged.name = sum.name;
    merged.place = sum.place;
    for (const std::vector<LayerConfig>& path : sum.paths) erase(path.front());
    put(merged, shape, weight, bias);
    ++merged_.sums;
    return merged;
  }

  // Adds the planes of a kernel to the larger planes of another.
  void add_kernel(const LayerConfig& convolution, Size offset, const Shape& shape, std::vector<float>& whole) const {
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

MergedLayers merge_layers(std::vector<LayerConfig> layers, std::map<std::string, HostArray> weights) {
  Merger merger(std::move(weights));
  return merger.take(merger.merge(std::move(layers)));
}

ConfigNode with_layers(ConfigNode tree, const std::vector<LayerConfig>& layers) {
  for (ConfigNode::Entry& section : tree.entries) {
    if (section.key == "model")
      for (ConfigNode::Entry& entry : section.value.entries)
        if (entry.key == "layers") entry.value = write_layers(layers);
    if (section.key == "train")
      std::erase_if(section.value.entries, [](const ConfigNode::Entry& entry) {
        return entry.key == "freeze" || entry.key == "learning_rates";
      });
  }
  return tree;
}

}  // namespace twiddle
