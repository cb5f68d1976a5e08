#include <algorithm>

#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "models/config/config_tree.h"
#include "models/config/layer_list.h"
#include "models/config/yaml.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

// Levels of a key with its value: half of YAML's limit, because a layer's name skips two levels of the tree.
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
  Descent(const Override& override, Diagnostics& diagnostics) : diagnostics_(diagnostics), rest_(override.key) {
    auto source = std::make_shared<SourceText>();
    const bool set = override.from == "--set" || override.from.empty();
    source->name = shown(set ? "--set " + override.key + "=" + override.value : override.from + " " + override.value);
    place_ = {std::move(source), 0, 0, 1};
    value_ = override.is_text ? text_value(override.value) : parse_value(override.value);
  }

  void apply(ConfigNode& tree) {
    if (failed_) return;
    if (("." + rest_ + ".").find("..") != std::string::npos)
      return fail("the key has an empty part", "such as --set train.epochs=3");
    const auto parts = static_cast<std::size_t>(1 + std::count(rest_.begin(), rest_.end(), '.'));
    if (parts + levels(value_) > most_levels) return fail(join("nested more than ", most_levels, " levels deep"));
    if (part() == "base") return fail("'base' cannot be set from the command line", "name the other file itself");
    ConfigNode *node = &tree, *holder = nullptr;
    while (node != nullptr && !rest_.empty()) {
      holder = node;
      node = step(*node);
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
    if (!is_line_of_text(text)) fail("the value is not text: it holds control characters, or bytes that are not UTF-8");
    ConfigNode value = text_node(text, place_);
    value.quoted = true;
    return value;
  }

  // An omitted value is an error, because it could empty a whole section by mistake. null removes a key.
  ConfigNode parse_value(const std::string& text) {
    if (text.find_first_not_of(" \t") == std::string::npos) {
      fail("there is no value after the '='", "such as --set train.epochs=3; KEY=null removes a key");
      return {};
    }
    const std::size_t errors_before = diagnostics_.size();
    ConfigNode value = parse_yaml(text, place_.source, diagnostics_);
    failed_ = failed_ || diagnostics_.size() > errors_before;
    value.place = place_;
    return value;
  }

  std::string part() const { return rest_.substr(0, rest_.find('.')); }

  void pass(const std::string& part) {
    done_ += (done_.empty() ? "" : ".") + part;
    rest_.erase(0, part.size() + 1);
  }

  bool in_layers() const { return (done_ + ".").starts_with("model.layers."); }

  // One part of the key down; null: there is no such key.
  ConfigNode* step(ConfigNode& node) {
    const std::string key = part();
    const bool chooses = done_.starts_with("train.") && is_choice(done_.substr(6));
    if (node.kind == Kind::null || (chooses && node.find(key) == nullptr)) {
      // `schedule: step` becomes a mapping so that its options can be set; another choice takes the place of the old.
      node = ConfigNode{};
      node.kind = Kind::mapping;
      node.place = place_;
    }
    if (node.kind == Kind::scalar) {
      fail(join("'", shown(done_), "' is a value, not a section: it has no '", shown(key), "'"));
      return nullptr;
    }
    if (ConfigNode::Entry* entry = find_entry(node, key)) {
      pass(key);
      if (rest_.empty()) entry->place = place_;
      return &entry->value;
    }
    if (in_layers())
      if (ConfigNode* layer = named_layer(node)) return layer;
    if (node.kind == Kind::sequence) return item_at(node, key);
    if (in_layers() && !lists_in(node).empty() && !is_option_of_paths(key)) {
      fail(unknown_name("layer", key, names_in(node)));
      return nullptr;
    }
    pass(key);
    node.entries.push_back({key, place_, ConfigNode{}});
    node.entries.back().value.place = place_;
    return &node.entries.back().value;
  }

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

  // The layer here whose name comes next in the key, which may be several parts: names may hold dots. Null: none.
  ConfigNode* named_layer(ConfigNode& node) {
    ConfigNode* layer = nullptr;
    std::string longest;
    for (ConfigNode* list : lists_in(node))
      for (ConfigNode& item : list->items)
        if (const std::string name = layer_name(item);
            name.size() > longest.size() && (rest_ + ".").starts_with(name + "."))
          layer = &item, longest = name;
    if (layer == nullptr) return nullptr;
    pass(longest);
    return &layer_or_options(*layer);
  }

  ConfigNode& layer_or_options(ConfigNode& item) const {
    const bool options =
        !rest_.empty() && item.kind == Kind::mapping && item.entries.size() == 1 && part() != item.entries.front().key;
    return options ? item.entries.front().value : item;
  }

  // By its number, from 0.
  ConfigNode* item_at(ConfigNode& list, const std::string& key) {
    const bool number = key.size() < 6 && key.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t index = number ? std::stoul(key) : list.items.size();
    if (index < list.items.size()) {
      const bool layers = in_layers();
      pass(key);
      return layers ? &layer_or_options(list.items[index]) : &list.items[index];
    }
    if (in_layers() && !number)
      fail(unknown_name("layer", key, layer_names(list)));
    else
      fail(join("'", done_, "' has ", list.items.size(), " items, counted from 0: there is no '", key, "'"));
    return nullptr;
  }

  Diagnostics& diagnostics_;
  Place place_;
  std::string done_, rest_;  // of the key
  ConfigNode value_;
  bool failed_ = false;
};

}  // namespace

void apply_overrides(ConfigNode& tree, const std::vector<Override>& overrides, Diagnostics& diagnostics) {
  for (const Override& override : overrides) Descent(override, diagnostics).apply(tree);
}

}  // namespace twiddle
