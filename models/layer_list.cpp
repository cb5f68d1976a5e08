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
      {"conv_transpose2d", "conv_transpose"},
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

void expand_lists(const std::vector<ConfigNode*>& lists, Diagnostics& diagnostics, std::size_t& visited);

// Writes out one list, or all paths of one layer that joins them: names are unique within that.
class Expander {
 public:
  Expander(Diagnostics& diagnostics, std::size_t& visited) : diagnostics_(diagnostics), visited_(visited) {}

  void expand(const ConfigNode& list, const std::string& suffix) {
    for (const ConfigNode& node : list.items) {
      if (++visited_ > most_layers) {
        if (visited_ == most_layers + 1) diagnostics_.add(node.place, join("more than ", most_layers, " layers"));
        return;
      }
      add(node, suffix);
    }
  }

  // What each of the lists, expanded in this order, has become.
  void take(const std::vector<ConfigNode*>& lists, const std::vector<std::size_t>& ends) {
    name_the_unnamed();
    std::size_t next = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      lists[i]->items.clear();
      for (; next < ends[i]; ++next) lists[i]->items.push_back(to_node(items_[next]));
    }
  }

  std::size_t size() const { return items_.size(); }

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
    expand_lists(path_lists(item.kind, item.options), diagnostics_, visited_);
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
  std::size_t& visited_;              // layers and repeats of the whole network
};

void expand_lists(const std::vector<ConfigNode*>& lists, Diagnostics& diagnostics, std::size_t& visited) {
  Expander expander(diagnostics, visited);
  std::vector<std::size_t> ends;
  for (const ConfigNode* list : lists) {
    expander.expand(*list, "");
    ends.push_back(expander.size());
  }
  expander.take(lists, ends);
}

}  // namespace

std::vector<ConfigNode*> path_lists(const std::string& kind, ConfigNode& options) {
  std::vector<ConfigNode*> lists;
  const auto take = [&](ConfigNode& node) {
    if (node.kind == Kind::sequence) lists.push_back(&node);
  };
  const auto with_key = [&](const char* key, const auto& use) {
    for (ConfigNode::Entry& entry : options.entries)
      if (entry.key == key) use(entry.value);
  };
  if (kind == "residual")
    for (const char* key : {"layers", "shortcut"}) with_key(key, take);
  if (kind == "parallel")
    with_key("paths", [&](ConfigNode& paths) {
      for (ConfigNode& path : paths.items) take(path);
    });
  return lists;
}

ConfigNode expand_layers(const ConfigNode& list, Diagnostics& diagnostics) {
  ConfigNode expanded = list;
  std::size_t visited = 0;
  expand_lists({&expanded}, diagnostics, visited);
  return expanded;
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

std::vector<LayerConfig> read_layers(const ConfigNode& list, const std::string& prefix) {
  std::vector<LayerConfig> layers;
  for (const ConfigNode& item : list.items) {
    const ConfigNode::Entry& entry = item.entries.front();
    LayerConfig layer{entry.key, "", entry.value, entry.place, {}};
    if (const ConfigNode* name = entry.value.find("name")) {
      layer.name = prefix + name->text;
      layer.options.entries.erase(layer.options.entries.begin());
    }
    for (const ConfigNode* path : path_lists(layer.kind, layer.options))
      layer.paths.push_back(read_layers(*path, layer.name + "."));
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
    const std::vector<ConfigNode*> lists = path_lists(layer.kind, options);
    for (std::size_t i = 0; i < lists.size(); ++i) *lists[i] = write_layers(layer.paths.at(i));
    const std::string name = layer.name.substr(layer.name.rfind('.') + 1);  // npos + 1: all of it
    if (!name.empty())
      options.entries.insert(options.entries.begin(), {"name", layer.place, text_node(name, layer.place)});
    ConfigNode item;
    item.kind = Kind::mapping;
    item.place = layer.place;
    item.entries.push_back({layer.kind, layer.place, std::move(options)});
    list.items.push_back(std::move(item));
  }
  return list;
}

}  // namespace twiddle
