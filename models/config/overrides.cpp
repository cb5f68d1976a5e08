#include <algorithm>
#include <sstream>

#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "models/config/config_tree.h"
#include "models/config/layer_list.h"
#include "models/config/yaml.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

// Of a key and its value: half of what YAML may hold, since a layer's name steps over two levels of the tree.
constexpr std::size_t most_levels = 32;

std::size_t levels(const ConfigNode& node) {
  std::size_t deepest = 0;
  for (const ConfigNode& item : node.items) deepest = std::max(deepest, 1 + levels(item));
  for (const ConfigNode::Entry& entry : node.entries) deepest = std::max(deepest, 1 + levels(entry.value));
  return deepest;
}

// Follows the key of one override down the tree and puts its value there.
class Descent {
 public:
  Descent(const Override& override, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    auto source = std::make_shared<SourceText>();
    const bool set = override.from == "--set" || override.from.empty();
    source->name = shown(set ? "--set " + override.key + "=" + override.value : override.from + " " + override.value);
    place_ = {std::move(source), 0, 0, 1};
    std::istringstream parts(override.key);
    for (std::string part; std::getline(parts, part, '.');) path_.push_back(part);
    if (override.key.empty() || override.key.back() == '.') path_.emplace_back();
    value_ = override.is_text ? text_value(override.value) : parse_value(override.value);
  }

  void apply(ConfigNode& tree) {
    if (failed_) return;
    if (std::count(path_.begin(), path_.end(), "") > 0)
      return fail("the key has an empty part", "such as --set train.epochs=3");
    if (path_.size() + levels(value_) > most_levels)
      return fail(join("nested more than ", most_levels, " levels deep"));
    if (path_.front() == "base")
      return fail("'base' cannot be set from the command line", "name the other file itself");
    ConfigNode *node = &tree, *holder = nullptr;
    for (std::size_t i = 0; i < path_.size() && node != nullptr; ++i) {
      if (in_layers(i)) join_name(*node, i);
      holder = node;
      node = step(*node, i);
    }
    if (node == nullptr) return;
    *node = value_;
    if (value_.kind == Kind::null)  // an item of a list stays
      std::erase_if(holder->entries, [&](const ConfigNode::Entry& entry) { return &entry.value == node; });
  }

 private:
  void fail(const std::string& message, const std::string& hint = {}) {
    diagnostics_.add(place_, message, hint);
    failed_ = true;
  }

  ConfigNode text_value(const std::string& text) {
    if (!is_line_of_text(text)) fail("the value is no text: it holds control characters, or bytes that are not UTF-8");
    ConfigNode value;
    value.kind = Kind::scalar;
    value.text = text;
    value.quoted = true;
    value.place = place_;
    return value;
  }

  // To leave a value out by mistake would empty a whole section: whoever means that writes null.
  ConfigNode parse_value(const std::string& text) {
    if (text.find_first_not_of(" \t") == std::string::npos) {
      fail("there is no value behind the '='", "such as --set train.epochs=3; KEY=null takes a key away");
      return {};
    }
    const std::size_t errors_before = diagnostics_.size();
    ConfigNode value = parse_yaml(text, place_.source, diagnostics_);
    failed_ = failed_ || diagnostics_.size() > errors_before;
    value.place = place_;
    return value;
  }

  std::string path_until(std::size_t end) const {
    return join_names({path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(end)}, ".");
  }

  ConfigNode* step(ConfigNode& node, std::size_t i) {
    if (node.kind == Kind::sequence) return step_into_list(node, i);
    const std::string& key = path_[i];
    if (node.kind == Kind::null || (is_choice(i) && (node.kind == Kind::scalar || node.find(key) == nullptr))) {
      // `schedule: step` becomes a mapping so that its options can be set; another choice takes the place of the old.
      node = ConfigNode{};
      node.kind = Kind::mapping;
      node.place = place_;
    }
    if (node.kind == Kind::scalar) {
      fail(join("'", shown(path_until(i)), "' is a value, not a section: it has no '", shown(key), "'"));
      return nullptr;
    }
    for (ConfigNode::Entry& entry : node.entries) {
      if (entry.key != key) continue;
      if (i + 1 == path_.size()) entry.place = place_;
      return &entry.value;
    }
    if (in_layers(i) && !lists_in(node).empty()) {
      for (ConfigNode* list : lists_in(node))
        if (ConfigNode* layer = named_layer(*list, i)) return layer;
      if (!is_option_of_paths(key)) {
        fail(unknown_name("layer", key, names_in(node)));
        return nullptr;
      }
    }
    node.entries.push_back({key, place_, ConfigNode{}});
    node.entries.back().value.place = place_;
    return &node.entries.back().value;
  }

  // Whether the key says which of several is meant, as in train.optimizer.sgd.
  bool is_choice(std::size_t i) const {
    return i == 2 && path_[0] == "train" && (path_[1] == "optimizer" || path_[1] == "schedule" || path_[1] == "loss");
  }

  bool in_layers(std::size_t i) const { return i >= 2 && path_[0] == "model" && path_[1] == "layers"; }

  // A list of layers itself, or those among the options of a layer that joins paths.
  static std::vector<ConfigNode*> lists_in(ConfigNode& node) {
    if (node.kind == Kind::sequence) return {&node};
    std::vector<ConfigNode*> lists;
    for (const char* kind : {"residual", "parallel"})
      for (ConfigNode* list : path_lists(kind, node)) lists.push_back(list);
    return lists;
  }

  static std::vector<std::string> names_in(ConfigNode& node) {
    std::vector<std::string> names;
    for (const ConfigNode* list : lists_in(node))
      for (const std::string& name : layer_names(*list)) names.push_back(name);
    return names;
  }

  static bool is_option_of_paths(const std::string& key) {
    return key == "layers" || key == "shortcut" || key == "paths" || key == "join" || key == "name";
  }

  // A layer's name may hold dots: parts of the key that make up the name of a layer here become one.
  void join_name(ConfigNode& node, std::size_t i) {
    for (const ConfigNode* list : lists_in(node))
      for (const std::string& name : layer_names(*list)) {
        const std::size_t parts = 1 + static_cast<std::size_t>(std::count(name.begin(), name.end(), '.'));
        const auto first = path_.begin() + static_cast<std::ptrdiff_t>(i);
        if (parts == 1 || parts > path_.size() - i) continue;
        const auto last = first + static_cast<std::ptrdiff_t>(parts);
        if (join_names({first, last}, ".") != name) continue;
        *first = name;
        path_.erase(first + 1, last);
        return;
      }
  }

  // The layer of that name, or its options where the key goes on; null: the list has none.
  ConfigNode* named_layer(ConfigNode& list, std::size_t i) const {
    const std::vector<std::string> names = layer_names(list);
    const auto name = std::find(names.begin(), names.end(), path_[i]);
    return name == names.end() ? nullptr : &layer_at(list.items[static_cast<std::size_t>(name - names.begin())], i);
  }

  ConfigNode& layer_at(ConfigNode& item, std::size_t i) const {
    const bool options = i + 1 < path_.size() && item.kind == Kind::mapping && item.entries.size() == 1 &&
                         path_[i + 1] != item.entries.front().key;
    return options ? item.entries.front().value : item;
  }

  // A number, from 0; for layers their names as well, and then the layer's options are meant.
  ConfigNode* step_into_list(ConfigNode& list, std::size_t i) {
    const bool layers = in_layers(i);
    if (layers)
      if (ConfigNode* layer = named_layer(list, i)) return layer;
    const bool number = path_[i].size() < 6 && path_[i].find_first_not_of("0123456789") == std::string::npos;
    const std::size_t index = number ? std::stoul(path_[i]) : list.items.size();
    if (index < list.items.size()) return layers ? &layer_at(list.items[index], i) : &list.items[index];
    if (layers && !number) {
      fail(unknown_name("layer", path_[i], layer_names(list)));
    } else {
      fail(join("'", path_until(i), "' has ", list.items.size(), " items, counted from 0: there is no '", path_[i],
                "'"));
    }
    return nullptr;
  }

  Diagnostics& diagnostics_;
  Place place_;
  std::vector<std::string> path_;
  ConfigNode value_;
  bool failed_ = false;
};

}  // namespace

void apply_overrides(ConfigNode& tree, const std::vector<Override>& overrides, Diagnostics& diagnostics) {
  for (const Override& override : overrides) Descent(override, diagnostics).apply(tree);
}

}  // namespace twiddle
