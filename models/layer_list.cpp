#include "models/layer_list.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t most_layers = 1000;

// Short stems as papers use them; a kind that is not here is its own stem.
std::string stem_of(const std::string& kind) {
  static const std::map<std::string, std::string> stems{
      {"conv2d", "conv"},
      {"linear", "fc"},
      {"max_pool", "pool"},
      {"avg_pool", "pool"},
      {"leaky_relu", "relu"},
      {"global_avg_pool", "pool"},
      {"local_response_norm", "norm"},
      {"batch_norm", "bn"},
  };
  const auto stem = stems.find(kind);
  if (stem != stems.end()) return stem->second;
  return !kind.empty() && std::isdigit(static_cast<unsigned char>(kind.back())) ? kind + "_" : kind;
}

bool is_name(const std::string& text) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  const auto part = [&](char c) { return letter(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '-'; };
  return !text.empty() && text.size() <= 100 && letter(text[0]) && std::all_of(text.begin(), text.end(), part);
}

// A layer before it is put into the flat list.
struct Item {
  std::string kind, name;  // name: empty where none was given
  Place place, name_place;
  ConfigNode options;
};

class Expander {
 public:
  explicit Expander(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void expand(const ConfigNode& list, const std::string& suffix) {
    for (const ConfigNode& node : list.items) {
      if (++visited_ > most_layers) {
        if (visited_ == most_layers + 1) diagnostics_.add(node.place, join("more than ", most_layers, " layers"));
        return;
      }
      add(node, suffix);
    }
  }

  ConfigNode take(const ConfigNode& list) {
    name_the_unnamed();
    ConfigNode flat;
    flat.kind = Kind::sequence;
    flat.place = list.place;
    for (Item& item : items_) flat.items.push_back(to_node(item));
    return flat;
  }

 private:
  void add(const ConfigNode& node, const std::string& suffix) {
    if (node.kind == Kind::scalar && !node.text.empty()) {
      items_.push_back({node.text, "", node.place, node.place, {}});
      return;
    }
    if (node.kind != Kind::mapping || node.entries.size() != 1) {
      std::string what = "a layer is a name, or one name with its options";
      std::string hint = "such as '- relu' or '- conv2d: {filters: 64, kernel: 3}'";
      if (node.kind == Kind::mapping && node.entries.size() > 1) {
        what += join("; this has ", node.entries.size(), " keys");
        hint = "indent the options further than '" + node.entries.front().key + ":'";
      }
      diagnostics_.add(node.place, what, hint);
      return;
    }
    const ConfigNode::Entry& entry = node.entries.front();
    if (entry.key == "repeat") return repeat(entry.value, suffix);
    Item item{entry.key, "", entry.place, entry.place, entry.value};
    if (item.options.kind == Kind::scalar || item.options.kind == Kind::sequence) {
      diagnostics_.add(item.options.place, "the options of '" + item.kind + "' must be a mapping of keys to values",
                       "such as '- dropout: {rate: 0.5}'");
      item.options = {};
    }
    take_name(item, suffix);
    items_.push_back(std::move(item));
  }

  void repeat(const ConfigNode& node, const std::string& suffix) {
    Params params(node, "repeat", diagnostics_);
    const std::int64_t times = params.integer("times", std::nullopt, 1, most_layers);
    const ConfigNode* layers = params.node("layers");
    if (layers == nullptr || layers->kind != Kind::sequence || layers->items.empty()) {
      params.error("layers", "'repeat' needs 'layers', a list");
      layers = nullptr;
    }
    params.finish();
    for (std::int64_t i = 1; layers != nullptr && i <= times && visited_ <= most_layers; ++i)
      expand(*layers, join(suffix, "_", i));
  }

  void take_name(Item& item, const std::string& suffix) {
    if (item.options.kind != Kind::mapping) return;
    const auto entry = std::find_if(item.options.entries.begin(), item.options.entries.end(),
                                    [](const ConfigNode::Entry& candidate) { return candidate.key == "name"; });
    if (entry == item.options.entries.end()) return;
    item.name = entry->value.text + suffix;
    item.name_place = entry->value.place;
    if (entry->value.kind != Kind::scalar || !is_name(entry->value.text)) {
      diagnostics_.add(item.name_place, "'name' must be made of letters, digits, '_' and '-', a letter first");
      item.name.clear();
    }
    item.options.entries.erase(entry);
    if (item.name.empty()) return;
    const auto [first, is_new] = taken_.emplace(item.name, item.name_place.line);
    if (!is_new)
      diagnostics_.add(item.name_place, join("two layers are called '", item.name, "'",
                                             first->second > 0 ? join(" (first at line ", first->second, ")") : ""));
  }

  void name_the_unnamed() {
    std::map<std::string, int> counts;
    for (Item& item : items_) {
      const std::string stem = stem_of(item.kind);
      int& count = counts[stem];
      ++count;
      if (!item.name.empty()) continue;
      while (!taken_.emplace(join(stem, count), item.place.line).second) ++count;
      item.name = join(stem, count);
    }
  }

  static ConfigNode to_node(Item& item) {
    if (item.options.kind == Kind::null) {
      item.options.kind = Kind::mapping;
      item.options.place = item.place;
    }
    if (item.options.kind == Kind::mapping)
      item.options.entries.insert(item.options.entries.begin(),
                                  {"name", item.name_place, text_node(item.name, item.name_place)});
    ConfigNode node;
    node.kind = Kind::mapping;
    node.place = item.place;
    node.entries.push_back({item.kind, item.place, std::move(item.options)});
    return node;
  }

  Diagnostics& diagnostics_;
  std::vector<Item> items_;
  std::map<std::string, int> taken_;  // names and the lines that gave them
  std::size_t visited_ = 0;
};

}  // namespace

ConfigNode expand_layers(const ConfigNode& list, Diagnostics& diagnostics) {
  Expander expander(diagnostics);
  expander.expand(list, "");
  return expander.take(list);
}

std::vector<std::string> layer_names(const ConfigNode& list) {
  std::vector<std::string> names;
  for (const ConfigNode& item : list.items) {
    const bool is_layer = item.kind == Kind::mapping && item.entries.size() == 1;
    const ConfigNode* name = is_layer ? item.entries.front().value.find("name") : nullptr;
    names.push_back(name == nullptr ? std::string() : name->text);
  }
  return names;
}

std::vector<LayerConfig> read_layers(const ConfigNode& list) {
  std::vector<LayerConfig> layers;
  for (const ConfigNode& item : list.items) {
    const ConfigNode::Entry& entry = item.entries.front();
    LayerConfig layer{entry.key, "", entry.value, entry.place};
    if (const ConfigNode* name = entry.value.find("name")) {
      layer.name = name->text;
      layer.options.entries.erase(layer.options.entries.begin());
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

ConfigNode write_layers(const std::vector<LayerConfig>& layers) {
  ConfigNode list;
  list.kind = Kind::sequence;
  for (const LayerConfig& layer : layers) {
    ConfigNode options = layer.options;
    options.kind = Kind::mapping;
    if (!layer.name.empty())
      options.entries.insert(options.entries.begin(), {"name", layer.place, text_node(layer.name, layer.place)});
    ConfigNode item;
    item.kind = Kind::mapping;
    item.place = layer.place;
    item.entries.push_back({layer.kind, layer.place, std::move(options)});
    list.items.push_back(std::move(item));
  }
  return list;
}

}  // namespace twiddle
