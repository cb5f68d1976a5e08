#include "models/checkpoints/torch_names.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace twiddle {

namespace {

// "features.12.weight" is tensor `weight` of member 12 of `features`; a lone nn.Sequential has no folder.
struct TorchName {
  std::string folder, number;

  std::string layer() const { return folder.empty() ? number : folder + "." + number; }
};

std::optional<TorchName> parse(const std::string& name) {
  const std::size_t last = name.rfind('.');
  if (last == std::string::npos || last == 0) return std::nullopt;
  const std::size_t before = name.rfind('.', last - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const TorchName parsed{name.substr(0, begin == 0 ? 0 : before), name.substr(begin, last - begin)};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool counted = !parsed.number.empty() && std::all_of(parsed.number.begin(), parsed.number.end(), is_digit);
  return counted ? std::optional(parsed) : std::nullopt;
}

// Digits of any length in the order of their values; `classifier` comes after `features`.
bool comes_first(const TorchName& a, const TorchName& b) {
  const auto rank = [](const TorchName& name) {
    return std::tuple(name.folder == "classifier", name.number.size(), name.number);
  };
  return rank(a) < rank(b);
}

// The order of folders must be known: one alone, or torchvision's two.
bool folders_are_ordered(const std::set<std::string>& folders) {
  return folders.size() == 1 || folders == std::set<std::string>{"classifier", "features"};
}

// The file's layers in order; empty where one name is of another kind.
std::vector<TorchName> layers_in(const ArrayTable& arrays) {
  std::set<TorchName, decltype(&comes_first)> layers(&comes_first);
  std::set<std::string> folders;
  for (const auto& [name, array] : arrays) {
    const std::optional<TorchName> parsed = parse(name);
    if (!parsed) return {};
    layers.insert(*parsed);
    folders.insert(parsed->folder);
  }
  if (!folders_are_ordered(folders)) return {};
  return {layers.begin(), layers.end()};
}

// PyTorch's word for what a layer calls "bn1.scale".
std::string torch_tensor(const std::string& kind, const std::string& parameter) {
  const std::string own = parameter.substr(parameter.rfind('.') + 1);
  const bool norm = kind == "batch_norm" || kind == "layer_norm" || kind == "group_norm";
  return norm && own == "scale" ? "weight" : own;
}

// Where layers are called as in PyTorch: our "bn1.scale" is "bn1.weight" there, and a scale a channel is no module.
std::map<std::string, std::string> same_layers(const Sequential& net, const ArrayTable& arrays) {
  std::map<std::string, std::string> names;
  for (const Sequential::Item* item : net.all_items())
    for (const Parameter& parameter : item->layer->parameters()) {
      const std::string& layer = item->layer->name();
      const std::string theirs = item->kind == "scale" ? layer : layer + "." + torch_tensor(item->kind, parameter.name);
      if (!arrays.contains(parameter.name) && arrays.contains(theirs)) names[parameter.name] = theirs;
    }
  return names;
}

}  // namespace

std::map<std::string, std::string> torch_names(const Sequential& net, const ArrayTable& arrays) {
  const std::vector<TorchName> layers = layers_in(arrays);
  if (layers.empty()) return same_layers(net, arrays);
  std::map<std::string, std::string> names;
  auto layer = layers.begin();
  for (const Sequential::Item* item : net.all_items()) {
    if (layer == layers.end()) break;
    if (item->layer->parameters().empty()) continue;
    for (const Parameter& parameter : item->layer->parameters())
      names[parameter.name] = layer->layer() + "." + torch_tensor(item->kind, parameter.name);
    ++layer;
  }
  return names;
}

}  // namespace twiddle
